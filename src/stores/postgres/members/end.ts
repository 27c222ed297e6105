import { isActive } from "../../../model/task.ts";
import { deletedEvent } from "../../../feed/task-events.ts";
import { parseTask } from "../../documents.ts";
import { updateDocument } from "../../task-writes.ts";
import type { Database, Sql, Transaction } from "../database.ts";
import type { JobQueue } from "../job-queue.ts";
import { lockRow, taskColumns, type TaskRow } from "../task-rows.ts";
import { ChangesByCollection } from "../../member-rules.ts";
import { toArray } from "./arrays.ts";
import {
  type Follower,
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
import { writeRows } from "./write-rows.ts";

interface EndDeps extends MemberDeps {
  jobs: JobQueue;
}

/** Numbers of the events of a change. */
interface Numbers {
  number: number;
  count: number;
}

/** Members that are read and written at a time, and the bytes of their records after which there are no more: one may be long. */
const chunkSize = 1_000;
const chunkBytes = 2_000_000;

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

/** Cancels the members of a collection, `change`, which is canceled with them. Returns the collection. */
export async function cancelAndCommit(deps: EndDeps, sql: Transaction, change: RowChange, all: readonly MemberRow[]) {
  const members = all.filter(({ state, isFree }) => isFree && isActive(state));
  const canceled = { ...change.row, ...change.written.stored, ...change.held };
  const followers = await lockFollowersOf(sql, members, canceled);
  let { number, count }: Numbers = { number: await writeChanges(sql.query, sql, [change], deps), count: 1 };
  if (members.length > 0) {
    const done = await cancelMembers(deps, sql, members);
    number = Math.max(number, done.number);
    count += done.count;
  }
  const followed = followAll(followers, deps);
  if (followed.length > 0) number = await writeChanges(sql.query, sql, followed, deps);
  const { task } = followed.find(({ row }) => row.seq === canceled.seq)?.written ?? { task: parseTask(canceled) };
  return { task, number, count: count + followed.length };
}

/** As `lockFollowers`, of members that become canceled with this locked collection; only others are asked for. */
async function lockFollowersOf(sql: Sql, members: readonly MemberRow[], collection: TaskRow): Promise<Follower[]> {
  const changes = new ChangesByCollection();
  for (const { state, memberships } of members) {
    if (memberships === 1) changes.add(collection.seq, { before: state, after: "canceled" }, 1);
  }
  const elsewhere = members.filter(({ memberships }) => memberships > 1);
  const others = await lockFollowers(sql, elsewhere, "canceled");
  const known = others.find(({ row }) => row.seq === collection.seq)?.changes ?? [];
  const own = { row: collection, changes: [...known, ...changes.take(collection.seq)] };
  return [...others.filter(({ row }) => row.seq !== collection.seq), ...(own.changes.length > 0 ? [own] : [])];
}

/** Cancels locked members, chunk by chunk: while the database writes one, the next is changed and sent. */
async function cancelMembers({ jobs, ...deps }: EndDeps, sql: Sql, members: readonly MemberRow[]): Promise<Numbers> {
  const now = deps.now();
  const chunks = chunksOf(members);
  const select = `SELECT ${taskColumns} FROM unreel.tasks WHERE seq = ANY(:seqs::bigint[]) ORDER BY seq`;
  const read = async (seqs?: number[]) =>
    seqs === undefined ? [] : sql.query<TaskRow>(select, { seqs: toArray("bigint", seqs, (seq) => seq) });
  const write = async (changes: readonly RowChange[]) =>
    changes.length === 0 ? 0 : writeChanges(sql.query, sql, changes, deps);
  let count = 0;
  const first = read(chunks[0]);
  const held = members.flatMap(({ job }) => job ?? []);
  const removed = jobs.remove(sql, held).then(() => 0);
  let pending = Promise.all([removed, read(chunks[1])]);
  pending.catch(() => {});
  let rows = await first;
  for (let next = 2; rows.length > 0; next += 1) {
    const changes = rows.flatMap((row): RowChange[] => {
      const written = deps.damage.unlessDamaged(row, () => updateDocument(row, { state: "canceled" }, {}, now));
      return written === undefined ? [] : [{ row, written, held: { job: null, lease: null } }];
    });
    count += changes.length;
    const sent = Promise.all([write(changes), read(chunks[next])]);
    // If the transaction has failed, the one before throws its error.
    sent.catch(() => {});
    [, rows] = await pending;
    pending = sent;
  }
  const [number] = await pending;
  return { number, count };
}

/** Returns the `seq` of each, in chunks. */
function chunksOf(members: readonly MemberRow[]): number[][] {
  const chunks: number[][] = [];
  let bytes = 0;
  for (const { seq, length } of members) {
    const last = chunks.at(-1);
    if (last === undefined || last.length === chunkSize || bytes >= chunkBytes) [bytes] = [0, chunks.push([seq])];
    else last.push(seq);
    bytes += length;
  }
  return chunks;
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
  const followers = await lockFollowers(sql, [row], undefined);
  const own = members.filter(({ isOwn }) => isOwn);
  const removed = [{ ...row, length: Buffer.byteLength(row.document) }, ...own];
  const held = removed.flatMap(({ job }) => job ?? []);
  if (held.length > 0) await jobs.remove(sql, held);
  const staying = members.filter(({ isOwn }) => !isOwn).map(({ seq }) => seq);
  if (staying.length > 0) await sql.query(countOutPlaces, { seq: row.seq, staying });
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
  FROM (SELECT task, count(*) AS places FROM unreel.members
    WHERE collection = :seq AND task = ANY(:staying::bigint[]) GROUP BY task) AS own
  WHERE seq = task`;

const removePlaces = "DELETE FROM unreel.members WHERE collection = :seq OR task = :seq";
