import type { KeyLimits } from "../../model/access-key.ts";
import type { State } from "../../model/task.ts";
import { deletedEvent, type TaskEvent } from "../../feed/task-events.ts";
import type { ListedTask, StoredTask } from "../documents.ts";
import { assertQuota, type Counted, noUse, type OwnerUse, useChange } from "../quotas.ts";
import { assertStoredBytes, taskNotFoundError } from "../rules.ts";
import type { ListQuery } from "../store.ts";
import type { Sql, Transaction } from "./database.ts";
import { readStoredBytes } from "./stored-files.ts";

/** The columns that an update writes. */
export interface RowUpdate extends Omit<StoredTask, "id" | "owner"> {
  /** Id of the task's job; a task that is queued or claimed has one. */
  job: string | null;
}

export interface TaskRow extends RowUpdate, StoredTask {
  seq: number;
  host: string;
  /** Of the owner's key; null: it has none. */
  limits: KeyLimits | null;
}

export async function readDocument(sql: Sql, id: string): Promise<string | undefined> {
  const [row] = await sql.query<TaskRow>("SELECT document FROM unreel.tasks WHERE id = $1", [
    asText(id),
  ]);
  return row?.document;
}

/** Whether this lease holds the task. */
export async function holds(sql: Sql, id: string, lease: string): Promise<boolean> {
  const rows = await sql.query("SELECT 1 FROM unreel.tasks WHERE id = $1 AND lease = $2", [
    asText(id),
    asText(lease),
  ]);
  return rows.length > 0;
}

/** Returns at most `limit` rows, newest first. */
export async function readPage(
  sql: Sql,
  { limit, state, owner, before }: ListQuery,
): Promise<ListedTask[]> {
  const filters = Object.entries({ state, owner: owner && asText(owner) }).filter(
    ([, value]) => value !== undefined,
  );
  const conditions = filters.map(([column], index) => ` AND ${column} = $${index + 3}`).join("");
  const rows = await sql.query<StoredRow>(
    `SELECT seq, id, document FROM unreel.tasks WHERE seq < $2${conditions}
     ORDER BY seq DESC LIMIT $1`,
    [limit, before ?? Number.MAX_SAFE_INTEGER, ...filters.map(([, value]) => value)],
  );
  return rows.map(toRow);
}

/**
 * Returns the row, locked FOR UPDATE until the transaction ends.
 *
 * @throws ServiceError `not_found`.
 */
export async function lockRow(sql: Sql, id: string): Promise<TaskRow> {
  const row = await lockRowNoWait(sql, id, "");
  if (row === undefined) throw taskNotFoundError(id);
  return row;
}

/**
 * Returns the row, locked as by `lockRow`; undefined if there is none.
 *
 * @throws DatabaseError, see `isLockNotAvailable`, if another transaction has locked it.
 */
export async function lockRowNoWait(
  sql: Sql,
  id: string,
  wait = "NOWAIT",
): Promise<TaskRow | undefined> {
  const [row] = await sql.query<StoredRow>(
    `SELECT seq, id, state, owner, host, document, lease, deaths AS "stalledCount", job, bytes,
       finished_at AS "finishedAt",
       (SELECT document::json -> 'limits' FROM unreel.keys WHERE name = owner) AS limits
     FROM unreel.tasks WHERE id = $1 FOR UPDATE ${wait}`,
    [asText(id)],
  );
  return row && toRow(row);
}

/** Resolves when no transaction has locked the row. */
export async function waitForRowLock(sql: Sql, id: string): Promise<void> {
  await sql.query("SELECT 1 FROM unreel.tasks WHERE id = $1 FOR SHARE", [id]);
}

/**
 * Writes a locked row and its event, and commits unless a limit must be checked: then the caller commits. Returns the
 * event's number. As in every write the counters come last: from then on other writes wait for the commit, so events are
 * numbered in the order of the commits.
 *
 * @throws ServiceError `quota_exceeded`, StorageFullError; then the caller must roll back.
 */
export async function saveRowAndCommit(
  sql: Transaction,
  row: TaskRow,
  update: RowUpdate,
  event: TaskEvent,
  maxStoredBytes?: number,
): Promise<number> {
  const isChecked = maxStoredBytes !== undefined;
  const { number, use } = await writeWithEvent(sql, row, { ...updateOf(update), event, isChecked });
  if (row.limits !== null) assertQuota(row.limits, use, row, update);
  // In a statement of its own, which sees what was committed before the counters were locked.
  if (isChecked) assertStoredBytes(await readStoredBytes(sql), maxStoredBytes);
  return number;
}

/**
 * Writes a locked row that is claimed, otherwise as `saveRowAndCommit`. Does not commit if the owner's key has
 * limits, which the caller must check with the result.
 */
export async function saveClaim(
  sql: Transaction,
  row: TaskRow,
  update: RowUpdate,
  event: TaskEvent,
): Promise<Written> {
  return writeWithEvent(sql, row, { ...updateOf(update), event, isClaim: true });
}

function updateOf(update: RowUpdate) {
  const { state, document, lease, stalledCount, job, bytes, finishedAt } = update;
  const write = `UPDATE unreel.tasks SET state = $15, document = $16, lease = $17, deaths = $18,
       job = $19, bytes = $20, finished_at = $21 WHERE seq = $14`;
  const values = [state, document, lease, stalledCount, job, bytes, finishedAt];
  return { write, values, after: update };
}

/** Removes a locked row, otherwise as `saveRowAndCommit`. */
export async function removeRowAndCommit(sql: Transaction, row: TaskRow): Promise<number> {
  const event = deletedEvent(row.id, row.owner);
  const write = "DELETE FROM unreel.tasks WHERE seq = $14";
  const { number } = await writeWithEvent(sql, row, { write, values: [], event });
  return number;
}

interface Write {
  /** A statement with the row's `seq` as $14 and `values` after it. */
  write: string;
  values: unknown[];
  /** The row after the write; default: there is none. */
  after?: Counted;
  event: TaskEvent;
  /** Whether this is the owner's last claim; default: no. */
  isClaim?: boolean;
  /** Whether the caller checks the result before it commits, whatever limits the owner has; default: no. */
  isChecked?: boolean;
}

interface Written {
  /** Number of the event. */
  number: number;
  /** Of the owner, after the write; zeros if the write does not change it. */
  use: OwnerUse;
}

/** Commits, too, unless the result is checked or the owner has limits. The owner's row comes after the counters, which are one row for all. */
async function writeWithEvent(
  sql: Transaction,
  row: TaskRow,
  { write, values, after, event, isClaim = false, isChecked = false }: Write,
): Promise<Written> {
  const change = useChange(row, after);
  const countChange = (state: State) =>
    Number(after?.state === state) - Number(row.state === state);
  const { type, taskId, json, owner } = event;
  const run = row.limits === null && !isChecked ? sql.queryAndCommit : sql.query;
  const [written] = await run<Record<"number" | keyof OwnerUse, string | null>>(
    `WITH written AS (${write}),
     counted AS (
       UPDATE unreel.counters SET events = events + 1, counted_events = counted_events + 1,
         queued = queued + $1, running = running + $7, succeeded = succeeded + $11,
         failed = failed + $12, canceled = canceled + $13
       RETURNING events AS number
     ),
     published AS (
       INSERT INTO unreel.task_events (number, type, task_id, json, owner)
       SELECT number, $2, $3, $4, $5 FROM counted
     ),
     owned AS (
       INSERT INTO unreel.owners AS known (owner, queued, running, bytes, claimed)
       SELECT $6, $1, $7, $8, CASE WHEN $9 THEN number ELSE 0 END FROM counted WHERE $10
       ON CONFLICT (owner) DO UPDATE
       SET queued = known.queued + excluded.queued, running = known.running + excluded.running,
         bytes = known.bytes + excluded.bytes, claimed = greatest(known.claimed, excluded.claimed)
       RETURNING queued, running, bytes
     )
     SELECT number, queued, running, bytes, pg_notify('unreel_events', number::text)
     FROM counted LEFT JOIN owned ON true`,
    [
      change.queued,
      type,
      taskId,
      json,
      owner,
      owner ?? "",
      change.running,
      change.bytes,
      isClaim,
      isClaim || change !== noUse,
      countChange("succeeded"),
      countChange("failed"),
      countChange("canceled"),
      row.seq,
      ...values,
    ],
  );
  const { number, queued, running, bytes } = written ?? {};
  const use = { queued: Number(queued), running: Number(running), bytes: Number(bytes) };
  return { number: Number(number), use };
}

/** Postgres refuses NUL in text. The replacement makes such an id unknown, as no id has that character. */
function asText(id: string): string {
  return id.replaceAll("\0", "\uFFFD");
}

/** The driver returns a bigint as text. */
type StoredRow = Omit<TaskRow, "seq" | "bytes"> & { seq: string; bytes: string };

function toRow(row: StoredRow): TaskRow {
  return { ...row, seq: Number(row.seq), bytes: Number(row.bytes) };
}
