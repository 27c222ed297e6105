import { deletedEvent, type TaskEvent } from "../../task-events.ts";
import type { ListedTask, StoredTask } from "../documents.ts";
import { taskNotFoundError } from "../rules.ts";
import type { ListQuery } from "../store.ts";
import type { Sql, Transaction } from "./database.ts";

/** The columns that an update writes. */
export interface RowUpdate extends Omit<StoredTask, "id" | "owner"> {
  /** Id of the task's job; a task that is queued or claimed has one. */
  job: string | null;
}

export interface TaskRow extends RowUpdate, StoredTask {
  seq: number;
  host: string;
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
  const filters = Object.entries({ state, owner }).filter(([, value]) => value !== undefined);
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
    `SELECT seq, id, state, owner, host, document, lease, deaths AS "stalledCount", job
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
 * Writes a locked row and its event, and commits. Returns the event's number. As in every write the counters
 * come last: from then on other writes wait for the commit, so events are numbered in the order of the commits.
 */
export async function saveRowAndCommit(
  sql: Transaction,
  row: TaskRow,
  update: RowUpdate,
  event: TaskEvent,
): Promise<number> {
  const queued = Number(update.state === "queued") - Number(row.state === "queued");
  const { state, document, lease, stalledCount, job } = update;
  const values = [row.seq, state, document, lease, stalledCount, job];
  const write = `UPDATE unreel.tasks
    SET state = $7, document = $8, lease = $9, deaths = $10, job = $11 WHERE seq = $6`;
  return writeWithEventAndCommit(sql, { write, values, queued, event });
}

/** Removes a locked row, otherwise as `saveRowAndCommit`. */
export async function removeRowAndCommit(
  sql: Transaction,
  { seq, id, state, owner }: TaskRow,
): Promise<number> {
  const queued = -Number(state === "queued");
  const write = "DELETE FROM unreel.tasks WHERE seq = $6";
  const event = deletedEvent(id, owner);
  return writeWithEventAndCommit(sql, { write, values: [seq], queued, event });
}

interface Write {
  /** A statement whose parameters start at $6. */
  write: string;
  values: unknown[];
  /** Change of the number of queued tasks. */
  queued: number;
  event: TaskEvent;
}

async function writeWithEventAndCommit(
  sql: Transaction,
  { write, values, queued, event }: Write,
): Promise<number> {
  const { type, taskId, json, owner } = event;
  const [row] = await sql.queryAndCommit<{ number: string }>(
    `WITH written AS (${write}),
     counted AS (
       UPDATE unreel.counters SET events = events + 1, queued = queued + $1 RETURNING events AS number
     ),
     published AS (
       INSERT INTO unreel.task_events (number, type, task_id, json, owner)
       SELECT number, $2, $3, $4, $5 FROM counted
     )
     SELECT number, pg_notify('unreel_events', number::text) FROM counted`,
    [queued, type, taskId, json, owner, ...values],
  );
  return Number(row?.number);
}

/** Postgres refuses NUL in text. The replacement makes such an id unknown, as no id has that character. */
function asText(id: string): string {
  return id.replaceAll("\0", "\uFFFD");
}

/** The driver returns a bigint as text. */
type StoredRow = Omit<TaskRow, "seq"> & { seq: string };

function toRow(row: StoredRow): TaskRow {
  return { ...row, seq: Number(row.seq) };
}
