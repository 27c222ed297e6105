import { changeEvent, deletedEvent, type TaskEvent } from "../feed/task-events.ts";
import type { Task } from "../model/task.ts";
import type { DamageReport, StoredTask } from "./documents.ts";
import {
  followMembers,
  growDocument,
  type GrowthStep,
  parseHeld,
  type TaskWrite,
  updateDocument,
} from "./task-writes.ts";
import {
  ChangesByCollection,
  growthAfter,
  growthAfterRetry,
  newMembers,
  retriedAtOnce,
  isRetried,
  retryChange,
  type StateChange,
} from "./member-rules.ts";
import type { Grown, Growing, Idempotency } from "./store-types.ts";

export interface LocalRow extends StoredTask {
  seq: number;
}

/** When a task can be claimed. */
export interface Claimability {
  /** By the steady clock; 0: at once; Infinity: never. */
  claimableAtMs: number;
  lease: string | null;
}

export const atOnce: Claimability = Object.freeze({ claimableAtMs: 0, lease: null });
export const never: Claimability = Object.freeze({ claimableAtMs: Infinity, lease: null });

/** The tables of a store that one process has to itself, inside a transaction; what throws has changed nothing. */
export interface LocalTables<Row extends LocalRow> {
  find(seq: number): Row | undefined;
  byId(id: string): Row | undefined;
  /** @throws ServiceError `not_found` */
  require(id: string): Row;
  /** Returns the task that is reused instead of this one. */
  findReusable(task: Task): Row | undefined;
  /** Returns how many more tasks of the owner may be queued. */
  room(owner: string | null): number;
  /** Returns how many tasks are queued. */
  queued(): number;
  /** Returns what was kept under the key in the last 24 hours, as `earlierDocument`. */
  recallKey(idempotency: Idempotency, nowMs: number): string | undefined;
  keepKey(idempotency: Idempotency, document: string, nowMs: number): void;
  /** Stores a new task; returns its `seq`. @throws ServiceError `conflict` if the id is taken; `quota_exceeded` */
  insert(task: Task, document: string): number;
  /**
   * Writes what has changed, and the message for those that get it.
   *
   * @param claim Absent: as before.
   * @throws ServiceError `quota_exceeded`, StorageFullError
   */
  write(row: Row, written: TaskWrite, claim?: Claimability, maxStoredBytes?: number): void;
  setClaimableAt(row: Row, claimableAtMs: number): void;
  /** Returns the task of the owner whose turn it is at `nowMs`; its host is not excepted. */
  nextInTurn(nowMs: number, exceptHosts: readonly string[]): Row | undefined;
  /** Puts the owner after the others that run as many tasks. */
  markClaim(row: Row): void;
  /** Returns how many bytes the limits of the owner leave; undefined: any number. */
  bytesLeft(row: Row): number | undefined;
  /** Calls `job`, which changes many tasks. */
  inBulk<T>(job: () => T): T;
  remove(row: Row): void;
  addPlace(collection: number, index: number, task: number): void;
  /** Returns the collections that the task is a member of, and how often. */
  placesOf(task: number): { collection: number; places: number }[];
  removePlacesOf(task: number): void;
  removePlacesIn(collection: number): void;
  /** Returns queued and running members that a collection has made and that are in no other one which is queued or running. */
  cancelable(collection: number): number[];
  /** Returns members that a collection has made and that are in no other one. */
  own(collection: number): number[];
  /** Returns failed and canceled members after this index. */
  ended(collection: number, after: number, limit: number): { index: number; task: number }[];
}

export type LocalMembers<Row extends LocalRow> = ReturnType<typeof createLocalMembers<Row>>;

/** Creates the changes of collections and members. Each returns the events of what it has changed. */
export function createLocalMembers<Row extends LocalRow>(
  tables: LocalTables<Row>,
  { damage, now }: { damage: Pick<DamageReport, "unlessDamaged">; now: () => Date },
) {
  /** @param collection One that the task is in: most are in no other. */
  function collect(changes: ChangesByCollection<number>, row: Row, change: StateChange, collection?: number): void {
    if (row.memberships === 0) return;
    if (row.memberships === 1 && collection !== undefined) return changes.add(collection, change, 1);
    for (const place of tables.placesOf(row.seq)) changes.add(place.collection, change, place.places);
  }

  function followAll(changes: ChangesByCollection<number>): TaskEvent[] {
    return changes.keys().flatMap((seq) => {
      const row = tables.find(seq);
      const written = row && damage.unlessDamaged(row, () => followMembers(row, changes.take(seq), now()));
      if (row === undefined || written === undefined) return [];
      tables.write(row, written);
      return [written.event];
    });
  }

  function growRow(row: Row, before: Task, step: GrowthStep): TaskWrite {
    const written = growDocument(row, before, step, now());
    tables.write(row, written, step.growth === null ? never : undefined);
    return written;
  }

  return {
    /** Has the collections follow a change of a member; call it while the task still is one. */
    follow(row: Row, change: StateChange): TaskEvent[] {
      if (row.memberships === 0 || change.before === change.after) return [];
      const changes = new ChangesByCollection<number>();
      collect(changes, row, change);
      return followAll(changes);
    },

    grow(id: string, growing: Growing): { result: Grown; events: TaskEvent[] } {
      const row = tables.require(id);
      const before = parseHeld(row, growing.lease);
      const { isReusing, warnings } = growing;
      const members = newMembers(before, growing);
      const changes = new ChangesByCollection<number>();
      const events: TaskEvent[] = [];
      let room = tables.room(row.owner);
      let added = 0;
      for (const { index, task } of members) {
        const found = isReusing ? tables.findReusable(task) : undefined;
        if (found === undefined && room <= 0) break;
        const document = JSON.stringify(task);
        const seq = found?.seq ?? tables.insert(task, document);
        if (found === undefined) events.push(changeEvent(task, document));
        if (found === undefined) room -= 1;
        tables.addPlace(row.seq, index, seq);
        changes.add(row.seq, { before: undefined, after: found?.state ?? task.state }, 1);
        added += 1;
      }
      const growth = growthAfter(before, { ...growing, members }, added);
      const { task, event } = growRow(row, before, { changes: changes.take(row.seq), growth, warnings });
      return { result: { task, isWhole: added === members.length }, events: [...events, event] };
    },

    retry(id: string, lease: string): { result: Grown; events: TaskEvent[] } {
      const row = tables.require(id);
      const before = parseHeld(row, lease);
      const ended = tables.ended(row.seq, before.growth?.retried ?? 0, retriedAtOnce);
      const changes = new ChangesByCollection<number>();
      const events: TaskEvent[] = [];
      let last: number | undefined;
      let room = tables.room(row.owner);
      for (const { index, task } of ended) {
        const member = tables.find(task);
        const isEnded = member !== undefined && isRetried(member.state);
        if (isEnded && room <= 0) break;
        last = index;
        const written = isEnded && damage.unlessDamaged(member, () => updateDocument(member, retryChange, {}, now()));
        if (!isEnded || !written) continue;
        room -= 1;
        collect(changes, member, { before: member.state, after: "queued" }, row.seq);
        tables.write(member, written, atOnce);
        events.push(written.event);
      }
      const isWhole = ended.length === 0 || last === ended.at(-1)?.index;
      const left = growthAfterRetry(before, ended.length === 0 ? undefined : (last ?? before.growth?.retried));
      const { task, event } = growRow(row, before, { changes: changes.take(row.seq), growth: left });
      return { result: { task, isWhole }, events: [...events, event, ...followAll(changes)] };
    },

    /** Cancels the members of a collection that has just been canceled. */
    cancel(collection: Row): TaskEvent[] {
      const changes = new ChangesByCollection<number>();
      const events: TaskEvent[] = [];
      for (const seq of new Set(tables.cancelable(collection.seq))) {
        const member = tables.find(seq);
        const written =
          member && damage.unlessDamaged(member, () => updateDocument(member, { state: "canceled" }, {}, now()));
        if (member === undefined || written === undefined) continue;
        collect(changes, member, { before: member.state, after: "canceled" }, collection.seq);
        tables.write(member, written, never);
        events.push(written.event);
      }
      return [...events, ...followAll(changes)];
    },

    /** Removes a task with its places, and a collection with the members that it alone has. */
    remove(row: Row): TaskEvent[] {
      const followed = this.follow(row, { before: row.state, after: undefined });
      const own = [...new Set(tables.own(row.seq))].flatMap((seq) => tables.find(seq) ?? []);
      for (const each of own) tables.remove(each);
      tables.removePlacesIn(row.seq);
      if (row.memberships > 0) tables.removePlacesOf(row.seq);
      tables.remove(row);
      return [row, ...own].map(({ id, owner }) => deletedEvent(id, owner)).concat(followed);
    },
  };
}
