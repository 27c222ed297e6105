import { deletedEvent } from "../../../feed/task-events.ts";
import { parseTask } from "../../documents.ts";
import { updateDocument } from "../../task-writes.ts";
import type { Database, Transaction } from "../database.ts";
import type { JobQueue } from "../job-queue.ts";
import { lockRow, taskColumns, type TaskRow, writeRows } from "../task-rows.ts";
import {
  followAll,
  lockFollowers,
  lockMembers,
  lockOwnerOf,
  type MemberDeps,
  type MemberRow,
  removedUse,
  type RowChange,
  writeChanges,
} from "./member-rows.ts";

interface EndDeps extends MemberDeps {
  jobs: JobQueue;
}

/** Numbers of the events of a change. */
interface Numbers {
  number: number;
  count: number;
}

/** Members that are read and written at a time: records may be long. */
const chunkSize = 500;

/**
 * Runs a transaction that ends a task. `work` gets the members if that is a collection, locked before it; if `work` finds out
 * that it is one without having got them, it must throw `mustLockMembers`, and is run again with them.
 */
export async function endInTransaction<T>(
  database: Database,
  id: string,
  work: (sql: Transaction, members: MemberRow[] | undefined) => Promise<T>,
): Promise<T> {
  try {
    return await database.transaction((sql) => work(sql, undefined));
  } catch (error) {
    if (error !== mustLockMembers) throw error;
  }
  return database.transaction(async (sql) => {
    await lockOwnerOf(sql, id);
    return work(sql, await lockMembers(sql, id));
  });
}

/** Thrown to roll back: single tasks are not kept waiting by locks that only collections need. */
export const mustLockMembers = new Error("the members of a collection must be locked before it");

/** Whether it is a collection, also if the record is damaged: in texts of a record the quotes are escaped. */
export function isCollection({ document }: Pick<TaskRow, "document">): boolean {
  return document.includes('"kind":"collection"');
}

/** Returns those members that are canceled with their collection. */
function cancelable(members: readonly MemberRow[]): MemberRow[] {
  return members.filter(({ state, isFree }) => isFree && (state === "queued" || state === "running"));
}

/** Cancels the members of a collection, `change`, which is canceled with them. Returns the collection. */
export async function cancelAndCommit(
  { jobs, ...deps }: EndDeps,
  sql: Transaction,
  change: RowChange,
  all: readonly MemberRow[],
) {
  const members = cancelable(all);
  const moves = members.map((member) => ({
    ...member,
    memberships: 1,
    before: member.state,
    after: "canceled" as const,
  }));
  const followers = await lockFollowers(sql, moves);
  const canceled = { ...change.row, ...change.written.stored, ...change.held };
  let { number, count }: Numbers = { number: await writeChanges(sql.query, sql, [change], deps), count: 1 };
  for (let start = 0; start < members.length; start += chunkSize) {
    const seqs = members.slice(start, start + chunkSize).map(({ seq }) => seq);
    const read = `SELECT ${taskColumns} FROM unreel.tasks WHERE seq = ANY(:seqs::bigint[]) ORDER BY seq`;
    const changes = (await sql.query<TaskRow>(read, { seqs })).flatMap((row): RowChange[] => {
      const written = deps.damage.unlessDamaged(row, () => updateDocument(row, { state: "canceled" }, {}, deps.now()));
      return written === undefined ? [] : [{ row, written, held: { job: null, lease: null } }];
    });
    if (changes.length === 0) continue;
    await jobs.remove(
      sql,
      changes.flatMap(({ row }) => row.job ?? []),
    );
    number = await writeChanges(sql.query, sql, changes, deps);
    count += changes.length;
  }
  const rows = followers.map((each) => (each.row.seq === canceled.seq ? { ...each, row: canceled } : each));
  const followed = followAll(rows, deps);
  if (followed.length > 0) number = await writeChanges(sql.query, sql, followed, deps);
  const { task } = followed.find(({ row }) => row.seq === canceled.seq)?.written ?? { task: parseTask(canceled) };
  return { task, number, count: count + followed.length };
}

/** Removes a task, and with a collection the members that it alone has. Returns what was removed. */
export async function removeAndCommit(
  { jobs, ...deps }: EndDeps,
  sql: Transaction,
  id: string,
  locked: readonly MemberRow[] | undefined,
): Promise<Numbers & { row: TaskRow }> {
  const row = await lockRow(sql, id);
  if (locked === undefined && isCollection(row)) throw mustLockMembers;
  const members = locked ?? [];
  const followers = await lockFollowers(sql, [{ ...row, before: row.state, after: undefined }]);
  const own = members.filter(({ isOwn }) => isOwn);
  const removed = [{ ...row, length: Buffer.byteLength(row.document) }, ...own];
  const held = removed.flatMap(({ job }) => job ?? []);
  if (held.length > 0) await jobs.remove(sql, held);
  if (members.length > 0) await sql.query(countOutPlaces, { seq: row.seq });
  if (members.length > 0 || row.memberships > 0) await sql.query(removePlaces, { seq: row.seq });
  const followed = followAll(followers, deps);
  const run = followed.length > 0 ? sql.query : sql.queryAndCommit;
  const events = removed.map((each) => deletedEvent(each.id, row.owner));
  const written = { owner: row.owner, updates: [], removals: removed, events, use: removedUse(removed) };
  const number = await writeRows(run, written);
  if (followed.length === 0) return { row, number, count: removed.length };
  const newest = await writeChanges(sql.query, sql, followed, deps);
  return { row, number: newest, count: removed.length + followed.length };
}

const countOutPlaces = `
  UPDATE unreel.tasks SET memberships = memberships - places
  FROM (SELECT task, count(*) AS places FROM unreel.members WHERE collection = :seq GROUP BY task) AS own
  WHERE seq = task`;

const removePlaces = "DELETE FROM unreel.members WHERE collection = :seq OR task = :seq";
