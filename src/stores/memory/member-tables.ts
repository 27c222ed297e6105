import type { Task } from "../../model/task.ts";
import { type ListedTask, parseWritten } from "../documents.ts";
import { newColumns } from "../task-writes.ts";
import type { LocalTables } from "../local-members.ts";
import type { NewMessage } from "../outbox.ts";
import type { ListQuery } from "../store.ts";
import { isSameVideo, siteKeyOf, videoKeyOf } from "../video-keys.ts";
import type { Entry, TaskTable } from "./task-table.ts";

/** The places of members, and the tasks, as collections and their members change. */
export interface MemberTables extends LocalTables<Entry> {
  /** Returns at most `limit` members by index, which stands for `seq`. */
  page(query: ListQuery): ListedTask[];
}

interface MemberTablesDeps {
  /** Throws if the store is closed. */
  tasks(): TaskTable;
  announce(message: NewMessage): void;
}

interface Place {
  collection: number;
  index: number;
  task: number;
}

export function createMemberTables({ tasks, announce }: MemberTablesDeps): MemberTables {
  const byCollection = new Map<number, Place[]>();
  const byTask = new Map<number, Place[]>();
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
    insert: (task, document) => tasks().insert(newEntry(task, document)),
    write(row, { stored, message }, claim) {
      const claimableAtMs = claim === "claimable" ? 0 : Infinity;
      tasks().put({ ...row, ...stored, ...(claim && { lease: null, claimableAtMs }) });
      if (message !== undefined) announce(message);
    },
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
        .filter(isActive)
        .filter(({ seq }) => !isElsewhere(seq, collection, isActive))
        .map(({ seq }) => seq),
    own: (collection) =>
      made(collection)
        .filter(({ seq }) => !isElsewhere(seq, collection, () => true))
        .map(({ seq }) => seq),
    ended: (collection, after, limit) =>
      placesIn(collection)
        .filter(({ index, task }) => index > after && isFailed(find(task)))
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

/** Returns what is stored of a new task. */
export function newEntry(task: Task, document: string): Omit<Entry, "seq"> {
  const claim = { lease: null, claimableAtMs: task.state === "queued" ? 0 : Infinity, stalledCount: 0 };
  const member = { idle: 0, memberships: 0, pageVideo: null } as const;
  return { ...newColumns(task, document), ...claim, ...member };
}

function isActive({ state }: Entry): boolean {
  return state === "queued" || state === "running";
}

function isFailed(entry: Entry | undefined): boolean {
  return entry?.state === "failed" || entry?.state === "canceled";
}

function isReusable(entry: Entry, task: Task): boolean {
  return (isActive(entry) || entry.bytes > 0) && isSameVideo(parseWritten(entry), task);
}
