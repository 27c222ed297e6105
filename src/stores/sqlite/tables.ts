import type { Task } from "../../model/task.ts";
import { tryParseTask } from "../documents.ts";
import type { NewMessage } from "../outbox.ts";
import { firstOfStep, membersAtOnce } from "../member-rules.ts";
import { assertStoredBytes, earlierDocument, taskNotFoundError } from "../rules.ts";
import { type Idempotency, idempotencyTtlMs } from "../store-types.ts";
import { newColumns, type TaskWrite } from "../task-writes.ts";
import { isSameVideo, searchKeysOf } from "../video-keys.ts";
import type { OwnerTable } from "./owner-table.ts";
import type { ClaimState, Statements } from "./statements.ts";
import { findTask, type TaskRow, type TaskTable } from "./task-table.ts";

/** Where a member is in a collection. */
interface Place {
  place: number;
  seq: number;
}

/** The next members that one step takes, up to the place `last`; undefined: there are no more after them. */
interface NextPlaces<T extends Place> {
  places: T[];
  last: number | undefined;
}

interface TablesDeps {
  sql: Statements;
  tasks: TaskTable;
  owners: OwnerTable;
  outbox: { add(message: NewMessage): void };
}

export type Tables = ReturnType<typeof createTables>;

/** The tables `tasks`, `members`, `owners` and `idempotency_keys`, inside a transaction; what throws has changed nothing. */
export function createTables({ sql, tasks, owners, outbox }: TablesDeps) {
  return {
    tasks,
    owners,
    find: (seq: number) => sql.taskBySeq.get(seq) as TaskRow | undefined,
    byId: (id: string) => findTask(sql, id),
    /** Returns undefined if the task has no owner, or there is no task. */
    ownerOf: (id: string) => (sql.ownerOfTask.get(id)?.["owner"] ?? undefined) as string | undefined,
    /** @throws ServiceError `not_found` */
    require(id: string): TaskRow {
      const row = findTask(sql, id);
      if (row === undefined) throw taskNotFoundError(id);
      return row;
    },
    /** Returns the newest task that this one would only repeat, and that has fewer places of collections; default: any number. */
    findReusable: (task: Task, places = Infinity) => findReusable(sql, task, places),
    /** Returns what was kept under the key in the last 24 hours, as `earlierDocument`. */
    recallKey(idempotency: Idempotency, nowMs: number): string | undefined {
      sql.forgetKeys.run(nowMs);
      const use = sql.recallKey.get(idempotency.key, nowMs);
      return earlierDocument(use as Parameters<typeof earlierDocument>[0], idempotency);
    },
    keepKey({ key, fingerprint }: Idempotency, document: string, nowMs: number): void {
      sql.keepKey.run(key, fingerprint, document, nowMs + idempotencyTtlMs);
    },
    /** Stores a new task; returns its `seq`. @throws ServiceError `conflict` if the id is taken; `quota_exceeded` */
    insert(task: Task, document: string): number {
      return tasks.insert({ ...newColumns(task, document), claimable: task.state === "queued" ? 1 : 0 });
    },
    /**
     * Writes what has changed, and the message for those that get it.
     *
     * @param claim Absent: as before.
     * @throws ServiceError `quota_exceeded`, StorageFullError
     */
    write(row: TaskRow, { stored, message }: TaskWrite, claim?: ClaimState, maxStoredBytes?: number): void {
      if (message !== undefined) outbox.add(message);
      tasks.save(row, { ...row, ...claim, ...stored });
      if (maxStoredBytes !== undefined) assertStoredBytes(owners.storedBytes(), maxStoredBytes);
    },
    addPlace(collection: number, index: number, task: number): void {
      sql.addPlace.run(collection, index, task);
      sql.countPlace.run(task);
    },
    /** Returns the collections that the task is a member of, and how often. */
    placesOf: (task: number) => sql.placesOfTask.all(task) as { collection: number; places: number }[],
    removePlacesOf: (task: number) => void sql.removePlacesOfTask.run(task),
    removePlace(collection: number, { place, seq }: Place): void {
      sql.removePlace.run(collection, place);
      sql.countOutPlace.run(seq);
    },
    endings: createEndings(sql),
    /** Returns the next failed and canceled members after this index, as many as one step takes. */
    ended: (collection: number, after: number) =>
      firstOfStep(sql.endedMembers.all(collection, after, membersAtOnce) as unknown as EndedMember[]).first,
  };
}

/** Creates the table `ending_collections`, and what finds the members that are to end. */
function createEndings(sql: Statements) {
  return {
    /**
     * Returns the next queued and running members that a collection has made and that are in no other one which is queued or
     * running; one that comes again is returned again.
     */
    cancelable: (collection: number, after: number) =>
      nextPlaces<Place>(sql.cancelableMembers.all(collection, after, membersAtOnce)),
    /** Returns the next members; own are those that a collection has made and that are in no other one. */
    membersAfter: (collection: number, after: number) =>
      nextPlaces<Place & { isOwn: 0 | 1 }>(sql.membersAfter.all(collection, after, membersAtOnce)),
    /** Returns collections that are canceled or deleted while not all of their members are. */
    all: () => (sql.endingCollections.all() as { collection: number }[]).map(({ collection }) => collection),
    /** Returns the place up to which the members of such a collection have ended. */
    placeOf: (collection: number) => (sql.endedUpTo.get(collection) as { place: number } | undefined)?.place,
    /** @param place Undefined: all have ended. */
    keep(collection: number, place: number | undefined): void {
      if (place === undefined) sql.dropEnding.run(collection);
      else sql.keepEnding.run(collection, place);
    },
  };
}

interface EndedMember {
  index: number;
  task: number;
  bytes: number;
}

/** @param rows Of the members that come next, `membersAtOnce` at most. */
function nextPlaces<T extends Place>(rows: unknown[]): NextPlaces<T> {
  const { first: places, isCut } = firstOfStep(rows as (T & { bytes: number })[]);
  const isLast = rows.length < membersAtOnce && !isCut;
  return { places, last: isLast ? undefined : places.at(-1)?.place };
}

/** Returns the newest task that is reused instead of this one. */
function findReusable(sql: Statements, task: Task, places: number): TaskRow | undefined {
  const { video, site } = searchKeysOf(task);
  const byUrl = video.flatMap((key) => [...sql.reusableByVideo.all(key), ...sql.reusableByPage.all(key)]);
  const found = [...byUrl, ...site.flatMap((key) => sql.reusableBySite.all(key))] as unknown as { seq: number }[];
  const newestFirst = [...new Set(found.map(({ seq }) => seq))].toSorted((a, b) => b - a).values();
  return newestFirst
    .map((seq) => sql.taskBySeq.get(seq) as unknown as TaskRow)
    .find((row) => {
      const known = row.memberships < places ? tryParseTask(row) : undefined;
      return known !== undefined && isSameVideo(known, task);
    });
}
