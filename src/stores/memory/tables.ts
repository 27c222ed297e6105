import { isActive, type Task } from "../../model/task.ts";
import { type ListedTask, parseWritten } from "../documents.ts";
import { newColumns } from "../task-writes.ts";
import { atOnce, type LocalTables, never } from "../local-members.ts";
import { isRetried } from "../member-rules.ts";
import { earlierDocument } from "../rules.ts";
import { idempotencyTtlMs } from "../store-types.ts";
import type { NewMessage } from "../outbox.ts";
import type { ListQuery } from "../store.ts";
import { isSameVideo, siteKeyOf, videoKeyOf } from "../video-keys.ts";
import type { Entry, TaskTable } from "./task-table.ts";

/** The tasks, the places of members, and the uses of idempotency keys. */
export interface MemoryTables extends LocalTables<Entry> {
  /** Returns at most `limit` members by index, which stands for `seq`. */
  page(query: ListQuery): ListedTask[];
}

interface MemoryTablesDeps {
  /** Throws if the store is closed. */
  tasks(): TaskTable;
  announce(message: NewMessage): void;
}

interface Place {
  collection: number;
  index: number;
  task: number;
}

export function createMemoryTables({ tasks, announce }: MemoryTablesDeps): MemoryTables {
  const byCollection = new Map<number, Place[]>();
  const byTask = new Map<number, Place[]>();
  const uses = new Map<string, { fingerprint: string; document: string; endsMs: number }>();
  const find = (seq: number) => tasks().bySeq(seq);
  const placesIn = (collection: number) => byCollection.get(collection) ?? [];

  function countPlaces(task: number, change: number): void {
    const entry = find(task);
    if (entry !== undefined) entry.memberships += change;
  }

  /** Whether the task is in another collection that `counts`. */
  function isElsewhere(task: number, collection: number, counts: (other: Entry) => boolean): boolean {
    const others = (byTask.get(task) ?? []).filter((place) => place.collection !== collection);
    return others.some((place) => {
      const other = find(place.collection);
      return other !== undefined && counts(other);
    });
  }

  function made(collection: number): Entry[] {
    return placesIn(collection)
      .flatMap(({ task }) => find(task) ?? [])
      .filter(({ listed }) => listed === 0);
  }

  return {
    find,
    byId: (id) => tasks().find(id),
    require: (id) => tasks().require(id),
    findReusable(task) {
      const key = videoKeyOf(task.url, task.options, task.owner);
      const site = siteKeyOf(task);
      const known = [...tasks().all()].filter(
        ({ video, pageVideo, siteVideo }) =>
          video === key || pageVideo === key || (site !== null && siteVideo === site),
      );
      return known.findLast((entry) => isReusable(entry, task));
    },
    room: (owner) => tasks().queueRoom(owner),
    queued: () => tasks().counts.queued,
    recallKey(idempotency, nowMs) {
      for (const [key, { endsMs }] of uses) if (endsMs <= nowMs) uses.delete(key);
      return earlierDocument(uses.get(idempotency.key), idempotency);
    },
    keepKey({ key, fingerprint }, document, nowMs) {
      uses.set(key, { fingerprint, document, endsMs: nowMs + idempotencyTtlMs });
    },
    insert(task, document) {
      const member = { idle: 0, memberships: 0, pageVideo: null, stalledCount: 0 } as const;
      const claim = task.state === "queued" ? atOnce : never;
      return tasks().insert({ ...newColumns(task, document), ...member, ...claim });
    },
    write(row, { stored, message }, claim, maxStoredBytes) {
      tasks().put({ ...row, ...stored, ...claim }, maxStoredBytes);
      if (message !== undefined) announce(message);
    },
    setClaimableAt(row, claimableAtMs) {
      row.claimableAtMs = claimableAtMs;
    },
    nextInTurn: (nowMs, exceptHosts) => tasks().nextInTurn(nowMs, exceptHosts),
    markClaim: (row) => tasks().markClaim(row),
    bytesLeft: (row) => tasks().bytesLeft(row),
    inBulk: (job) => job(),
    remove: (row) => tasks().remove(row),
    addPlace(collection, index, task) {
      const place = { collection, index, task };
      // Members are added by index, so that they stay in its order.
      byCollection.getOrInsertComputed(collection, () => []).push(place);
      byTask.getOrInsertComputed(task, () => []).push(place);
      countPlaces(task, 1);
    },
    placesOf(task) {
      const own = (byTask.get(task) ?? []).map(({ collection }) => collection);
      return [...new Set(own)].map((collection) => ({
        collection,
        places: own.filter((other) => other === collection).length,
      }));
    },
    removePlacesOf(task) {
      for (const { collection } of byTask.get(task) ?? []) {
        byCollection.set(
          collection,
          placesIn(collection).filter((place) => place.task !== task),
        );
      }
      byTask.delete(task);
    },
    removePlacesIn(collection) {
      for (const { task } of placesIn(collection)) {
        countPlaces(task, -1);
        byTask.set(
          task,
          (byTask.get(task) ?? []).filter((place) => place.collection !== collection),
        );
      }
      byCollection.delete(collection);
    },
    cancelable: (collection) =>
      made(collection)
        .filter(({ state }) => isActive(state))
        .filter(({ seq }) => !isElsewhere(seq, collection, ({ state }) => isActive(state)))
        .map(({ seq }) => seq),
    own: (collection) =>
      made(collection)
        .filter(({ seq }) => !isElsewhere(seq, collection, () => true))
        .map(({ seq }) => seq),
    ended: (collection, after, limit) =>
      placesIn(collection)
        .filter(({ index, task }) => index > after && isRetried(find(task)?.state))
        .slice(0, limit),
    page({ parent = "", before = 0, state, limit }) {
      const collection = tasks().find(parent)?.seq ?? 0;
      const wanted = placesIn(collection).filter(({ index }) => index > before);
      const members = wanted.flatMap(({ index, task }) => {
        const entry = find(task);
        return entry === undefined || (state ?? entry.state) !== entry.state ? [] : { ...entry, seq: index };
      });
      return members.slice(0, limit);
    },
  };
}

function isReusable(entry: Entry, task: Task): boolean {
  return (isActive(entry.state) || entry.bytes > 0) && isSameVideo(parseWritten(entry), task);
}
