import type { MemberChange } from "../../../feed/collection-changes.ts";
import type { State } from "../../../model/task.ts";
import type { DamageReport } from "../../documents.ts";
import { followMembers, type TaskWrite } from "../../task-writes.ts";
import { ChangesByCollection } from "../../member-rules.ts";
import type { NewMessage } from "../../outbox.ts";
import { addUse, countedLength, noUse, type OwnerUse, useChange } from "../../quotas.ts";
import { asText, type Query, type Sql } from "../database.ts";
import type { JobQueue } from "../job-queue.ts";
import { type RowUpdate, taskColumns, type TaskRow } from "../task-rows.ts";
import {
  countAndPublish,
  eventOfWrite,
  type RowWrite,
  joinWrittenRows,
  updateRows,
  type Written,
  type WrittenRows,
} from "./write-rows.ts";

/**
 * The rows of members and collections. Every transaction locks rows in this order, so that none waits for another in a circle:
 * the owner, if it adds or removes places of members; members; collections; the counters; within each, by `seq`.
 */

/** Transactions that add or remove places of members of one owner follow one another. */
export async function lockOwner(sql: Sql, owner: string | null): Promise<void> {
  await sql.query(`SELECT pg_advisory_xact_lock(${lockClass}, hashtext(:owner))`, { owner: owner ?? "" });
}

/** Does so for the owner of a task, if there is such a task. */
export async function lockOwnerOf(sql: Sql, id: string): Promise<void> {
  const lock = `SELECT pg_advisory_xact_lock(${lockClass}, hashtext(coalesce(owner, '')))
    FROM unreel.tasks WHERE id = :id`;
  await sql.query(lock, { id: asText(id) });
}

/** Of the advisory locks; the same in all processes. */
const lockClass = 726_198_345;

/** A locked member of a collection. */
export interface MemberRow extends Pick<TaskRow, "seq" | "id" | "state" | "idle" | "job" | "bytes" | "memberships"> {
  /** Bytes of its record. */
  length: number;
  /** Whether a collection has made it and it is in no other one. */
  isOwn: boolean;
  /** The same, as far as others are queued or running. */
  isFree: boolean;
}

/** Returns the members of a collection, locked; none if the task is no collection. */
export async function lockMembers(sql: Sql, id: string): Promise<MemberRow[]> {
  return sql.query<MemberRow>(`${memberRows} FOR UPDATE`, { id: asText(id) });
}

/** A member that has one place has it in this collection. */
const isElsewhere = (condition: string) => `memberships > 1 AND EXISTS (
  SELECT FROM unreel.members AS other JOIN unreel.tasks AS owning ON owning.seq = other.collection
  WHERE other.task = tasks.seq AND owning.id <> :id ${condition})`;

const memberRows = `
  SELECT seq, id, state, idle, job, bytes, memberships, octet_length(document) AS length,
    listed = 0 AND NOT (${isElsewhere("")}) AS "isOwn",
    listed = 0 AND NOT (${isElsewhere("AND owning.state IN ('queued', 'running')")}) AS "isFree"
  FROM unreel.tasks WHERE seq IN (
    SELECT task FROM unreel.members WHERE collection = (SELECT known.seq FROM unreel.tasks AS known WHERE known.id = :id)
  ) ORDER BY seq`;

/** Returns what `TaskStore.ownMembers` does. */
export async function readOwnMembers(sql: Sql, id: string): Promise<string[]> {
  const members = await sql.query<MemberRow>(memberRows, { id: asText(id) });
  return members.filter(({ isOwn, bytes }) => isOwn && bytes > 0).map((member) => member.id);
}

/** Returns the rows, locked; those that exist. */
export async function lockRows(sql: Sql, seqs: readonly number[]): Promise<TaskRow[]> {
  if (seqs.length === 0) return [];
  const read = `SELECT ${taskColumns} FROM unreel.tasks WHERE seq = ANY(:seqs::bigint[]) ORDER BY seq FOR UPDATE`;
  return sql.query<TaskRow>(read, { seqs });
}

/** A locked collection, and the changes of its members. */
export interface Follower {
  row: TaskRow;
  changes: MemberChange[];
}

/**
 * Returns the collections of members whose state becomes `after`, locked; undefined: they are removed.
 *
 * @param members Locked, and not written yet.
 * @param isLasting As in `MemberChange`.
 */
export async function lockFollowers(
  sql: Sql,
  members: readonly Pick<TaskRow, "seq" | "state" | "memberships">[],
  after: State | undefined,
  isLasting = false,
): Promise<Follower[]> {
  const moved = members.filter(({ state, memberships }) => memberships > 0 && state !== after);
  const changes = await readChanges(sql, moved, after, isLasting);
  const rows = await lockRows(sql, changes.keys());
  return rows.map((row) => ({ row, changes: changes.take(row.seq) }));
}

/** Returns what it means for their collections that the state of these locked members becomes `after`. */
export async function readChanges(
  sql: Sql,
  members: readonly Pick<TaskRow, "seq">[],
  after: State | undefined,
  isLasting = false,
): Promise<ChangesByCollection> {
  const changes = new ChangesByCollection();
  if (members.length === 0) return changes;
  const seqs = members.map(({ seq }) => seq);
  const found = await sql.query<{ collection: number; before: State; places: number }>(
    `SELECT collection, state AS before, count(*) AS places FROM unreel.members JOIN unreel.tasks ON seq = task
     WHERE task = ANY(:seqs::bigint[]) GROUP BY collection, state`,
    { seqs },
  );
  for (const { collection, before, places } of found) changes.add(collection, { before, after, isLasting }, places);
  return changes;
}

export interface RowChange {
  row: TaskRow;
  written: TaskWrite;
  /** Of the row after it. */
  held: Pick<RowUpdate, "job" | "lease">;
}

export interface EventNumbers {
  /** Of the newest. */
  number: number;
  count: number;
}

/** What the writes of members need. */
export interface MemberDeps {
  jobs: JobQueue;
  outbox: { add(sql: Sql, message: NewMessage): Promise<void> };
  damage: DamageReport;
  now: () => Date;
}

/** Returns what the changes of their members mean for collections; leaves out damaged ones. */
export function followAll(
  followers: readonly Follower[],
  { damage, now }: Pick<MemberDeps, "damage" | "now">,
): RowChange[] {
  return followers.flatMap(({ row, changes }) => {
    const written = damage.unlessDamaged(row, () => followMembers(row, changes, now()));
    return written === undefined ? [] : { row, written, held: row };
  });
}

interface WriteOptions {
  /** Of the same owner, written already: their events come before, or after, those of the changes. */
  before?: WrittenRows;
  after?: WrittenRows;
  /** Whether this is the owner's last claim; default: no. */
  isClaim?: boolean;
}

/** Writes changes of locked rows of one owner, with their messages and events. `run` is as in `countAndPublish`. */
export async function writeChanges(
  run: Query,
  sql: Sql,
  changes: readonly RowChange[],
  { outbox }: Pick<MemberDeps, "outbox">,
  { before, after, isClaim }: WriteOptions = {},
): Promise<Written> {
  for (const { written } of changes) if (written.message !== undefined) await outbox.add(sql, written.message);
  const updating = updateRows(sql, changes.map(toRowWrite));
  const rows = [before ?? [], toWrittenRows(changes), after ?? []].flat();
  const [written] = await Promise.all([countAndPublish(run, joinWrittenRows(rows), isClaim), updating]);
  return written;
}

export function toRowWrite({ row, written, held: { job, lease } }: RowChange): RowWrite {
  return { row, after: { ...row, ...written.stored, job, lease } };
}

/** Returns what to count and publish of changes. */
export function toWrittenRows(changes: readonly RowChange[]): WrittenRows {
  return {
    owner: changes[0]?.row.owner ?? null,
    moves: changes.map(({ row, written }) => ({ before: row.state, after: written.stored.state })),
    events: changes.map(({ row, written }) => eventOfWrite(row, written.stored.document, written.event)),
    use: changes.reduce((use, change) => addUse(use, useChange(change.row, toRowWrite(change).after)), noUse),
  };
}

/** Returns how the use of an owner changes when these tasks are removed. */
export function removedUse(rows: readonly Omit<MemberRow, "isOwn" | "isFree">[]): OwnerUse {
  return {
    queued: -rows.filter(({ state }) => state === "queued").length,
    running: -rows.filter(({ state, idle }) => state === "running" && idle === 0).length,
    bytes: -rows.reduce((sum, { bytes }) => sum + bytes, 0),
    records: -rows.reduce((sum, { state, length }) => sum + countedLength(state, length), 0),
  };
}
