import type { Task } from "../../model/task.ts";
import { parseTask } from "../documents.ts";
import { newColumns } from "../task-writes.ts";
import { atOnce, type Claimability, type LocalTables, never } from "../local-members.ts";
import type { NewMessage } from "../outbox.ts";
import { isSameVideo, siteKeyOf, videoKeyOf } from "../video-keys.ts";
import { assertStoredBytes } from "../rules.ts";
import type { OwnerTable } from "./owner-table.ts";
import type { ClaimState, Statements } from "./statements.ts";
import { findTask, keepKey, recallKey, requireTask, type TaskRow, type TaskTable } from "./task-table.ts";

interface SqliteTablesDeps {
  sql: Statements;
  tasks: TaskTable;
  owners: OwnerTable;
  outbox: { add(message: NewMessage): void };
}

/** The tables `tasks`, `members`, `owners` and `idempotency_keys`. */
export function createSqliteTables({ sql, tasks, owners, outbox }: SqliteTablesDeps): LocalTables<TaskRow> {
  const find = (seq: number) => sql.taskBySeq.get(seq) as TaskRow | undefined;
  return {
    find,
    byId: (id) => findTask(sql, id),
    require: (id) => requireTask(sql, id),
    findReusable: (task) => findReusable(sql, task),
    room: (owner) => tasks.queueRoom(owner),
    queued: () => tasks.counts.queued,
    recallKey: (idempotency, nowMs) => recallKey(sql, idempotency, nowMs),
    keepKey: (idempotency, document, nowMs) => keepKey(sql, idempotency, document, nowMs),
    insert(task, document) {
      return tasks.insert({ ...newColumns(task, document), claimable: task.state === "queued" ? 1 : 0 });
    },
    write(row, { stored, message }, claim, maxStoredBytes) {
      if (message !== undefined) outbox.add(message);
      tasks.save(row, { ...row, ...(claim && claimColumns(claim)), ...stored });
      if (maxStoredBytes !== undefined) assertStoredBytes(owners.storedBytes(), maxStoredBytes);
    },
    setClaimableAt: (row, claimableAtMs) => tasks.setDue(row, dueAtMsOf(claimableAtMs)),
    nextInTurn: (nowMs, exceptHosts) => tasks.nextInTurn(nowMs, exceptHosts),
    markClaim: ({ owner }) => owners.markClaim(owner),
    bytesLeft: ({ owner }) => owners.bytesLeft(owner),
    inBulk: (job) => tasks.inBulk(job),
    remove: (row) => tasks.remove(row),
    addPlace(collection, index, task) {
      sql.addPlace.run(collection, index, task);
      sql.countPlace.run(task);
    },
    placesOf: (task) => sql.placesOfTask.all(task) as { collection: number; places: number }[],
    removePlacesOf: (task) => void sql.removePlacesOfTask.run(task),
    removePlacesIn(collection) {
      sql.countOutPlaces.run(collection);
      sql.removePlacesIn.run(collection);
    },
    cancelable: (collection) => (sql.cancelableMembers.all(collection) as { seq: number }[]).map(({ seq }) => seq),
    own: (collection) => (sql.ownMembers.all(collection) as { seq: number }[]).map(({ seq }) => seq),
    ended: (collection, after, limit) =>
      sql.endedMembers.all(collection, after, limit) as { index: number; task: number }[],
  };
}

function claimColumns({ claimableAtMs, lease }: Claimability): ClaimState {
  return { claimable: claimableAtMs === atOnce.claimableAtMs ? 1 : 0, dueAtMs: dueAtMsOf(claimableAtMs), lease };
}

/** Returns null for a task that can be claimed at once, or never. */
function dueAtMsOf(claimableAtMs: number): number | null {
  return claimableAtMs === atOnce.claimableAtMs || claimableAtMs === never.claimableAtMs ? null : claimableAtMs;
}

/** Returns the newest task that is reused instead of this one. */
function findReusable(sql: Statements, task: Task): TaskRow | undefined {
  const key = videoKeyOf(task.url, task.options, task.owner);
  const bySite = sql.reusableBySite.all(siteKeyOf(task));
  const found = [...sql.reusableByVideo.all(key), ...sql.reusableByPage.all(key), ...bySite] as { seq: number }[];
  const newestFirst = new Set(found.map(({ seq }) => seq).toSorted((a, b) => b - a));
  return newestFirst
    .values()
    .map((seq) => sql.taskBySeq.get(seq) as unknown as TaskRow)
    .find((row) => isReusable(row, task));
}

/** A damaged record is none. */
function isReusable(row: TaskRow, task: Task): boolean {
  try {
    return isSameVideo(parseTask(row), task);
  } catch {
    return false;
  }
}
