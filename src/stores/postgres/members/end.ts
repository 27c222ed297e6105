import { isActive } from "../../../model/task.ts";
import { deletedEvent } from "../../../feed/task-events.ts";
import { parseTask } from "../../documents.ts";
import { updateDocument } from "../../task-writes.ts";
import type { Database, Sql, Transaction } from "../database.ts";
import { lockRow, taskColumns, type TaskRow } from "../task-rows.ts";
import { ChangesByCollection } from "../../member-rules.ts";
import {
  type EventNumbers,
  type Follower,
  followAll,
  lockFollowers,
  lockMembers,
  lockOwnerOf,
  type MemberDeps,
  type MemberRow,
  removedUse,
  type RowChange,
  toRowWrite,
  toWrittenRows,
  writeChanges,
} from "./member-rows.ts";
import { joinWrittenRows, toArray, updateRows, type WrittenRows } from "./write-rows.ts";

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

/**
 * Cancels the members of a collection, `change`, which is canceled with them. Returns the collection. All other writes wait for what
 * comes after the counters are locked: so the members are written before.
 */
export async function cancelAndCommit(
  deps: MemberDeps,
  sql: Transaction,
  change: RowChange,
  all: readonly MemberRow[],
) {
  const members = all.filter(({ state, isFree }) => isFree && isActive(state));
  const canceled = { ...change.row, ...change.written.stored, ...change.held };
  const followers = await lockFollowersOf(sql, members, canceled);
  const rows = await cancelMembers(deps, sql, members);
  let { number } = await writeChanges(sql.query, sql, [change], deps, { after: rows });
  const followed = followAll(followers, deps);
  if (followed.length > 0) ({ number } = await writeChanges(sql.query, sql, followed, deps));
  const { task } = followed.find(({ row }) => row.seq === canceled.seq)?.written ?? { task: parseTask(canceled) };
  return { task, number, count: 1 + rows.events.length + followed.length };
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

/** Writes locked members as canceled, chunk by chunk: while the database writes one, the next is changed and sent. */
async function cancelMembers(
  { jobs, ...deps }: MemberDeps,
  sql: Sql,
  members: readonly MemberRow[],
): Promise<WrittenRows> {
  const now = deps.now();
  const chunks = chunksOf(members);
  const select = `SELECT ${taskColumns} FROM unreel.tasks WHERE seq = ANY(:seqs::bigint[]) ORDER BY seq`;
  const read = async (seqs?: number[]) =>
    seqs === undefined ? [] : sql.query<TaskRow>(select, { seqs: toArray("bigint", seqs, (seq) => seq) });
  const all: WrittenRows[] = [];
  const first = read(chunks[0]);
  const held = members.flatMap(({ job }) => job ?? []);
  const removed = held.length > 0 ? jobs.remove(sql, held) : undefined;
  let pending = Promise.all([removed, read(chunks[1])]);
  pending.catch(() => {});
  let rows = await first;
  for (let next = 2; rows.length > 0; next += 1) {
    const changes = rows.flatMap((row): RowChange[] => {
      const written = deps.damage.unlessDamaged(row, () => updateDocument(row, { state: "canceled" }, {}, now));
      return written === undefined ? [] : [{ row, written, held: { job: null, lease: null } }];
    });
    all.push(toWrittenRows(changes));
    const sent = Promise.all([updateRows(sql, changes.map(toRowWrite)), read(chunks[next])]);
    // If the transaction has failed, the one before throws its error.
    sent.catch(() => {});
    [, rows] = await pending;
    pending = sent;
  }
  await pending;
  return joinWrittenRows(all);
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
  deps: MemberDeps,
  sql: Transaction,
  id: string,
  locked: readonly MemberRow[] | undefined,
): Promise<EventNumbers & { row: TaskRow }> {
  const row = await lockRow(sql, id);
  if (locked === undefined && isCollection(row)) throw mustLockMembers;
  const members = locked ?? [];
  const followers = await lockFollowers(sql, [row], undefined);
  const own = members.filter(({ isOwn }) => isOwn);
  const removed = [{ ...row, length: Buffer.byteLength(row.document) }, ...own];
  const held = removed.flatMap(({ job }) => job ?? []);
  if (held.length > 0) await deps.jobs.remove(sql, held);
  const staying = members.filter(({ isOwn }) => !isOwn).map(({ seq }) => seq);
  if (staying.length > 0) await sql.query(countOutPlaces, { seq: row.seq, staying });
  if (members.length > 0 || row.memberships > 0) await sql.query(removePlaces, { seq: row.seq });
  const followed = followAll(followers, deps);
  const removing = sql.query(removeRows, { removed: toArray("bigint", removed, ({ seq }) => seq) });
  const before = {
    owner: row.owner,
    moves: removed.map(({ state }) => ({ before: state, after: undefined })),
    events: removed.map((each) => ({ ...deletedEvent(each.id, row.owner), seq: null })),
    use: removedUse(removed),
  };
  const writing = writeChanges(sql.queryAndCommit, sql, followed, deps, { before });
  const [{ number }] = await Promise.all([writing, removing]);
  return { row, number, count: removed.length + followed.length };
}

const removeRows = "DELETE FROM unreel.tasks WHERE seq = ANY(:removed::bigint[])";

const countOutPlaces = `
  UPDATE unreel.tasks SET memberships = memberships - places
  FROM (SELECT task, count(*) AS places FROM unreel.members
    WHERE collection = :seq AND task = ANY(:staying::bigint[]) GROUP BY task) AS own
  WHERE seq = task`;

const removePlaces = "DELETE FROM unreel.members WHERE collection = :seq OR task = :seq";
