import type { Task } from "../../task.ts";
import { taskNotFoundError } from "../rules.ts";
import type { ListQuery } from "../store.ts";
import type { Sql, Transaction } from "./database.ts";

/** What changes of a row. */
export interface RowUpdate {
  state: Task["state"];
  document: string;
  lease: string | null;
  deaths: number;
  /** Number of its job; a task that is queued or claimed has one. */
  job: string | null;
}

export interface TaskRow extends RowUpdate {
  seq: number;
  id: string;
  host: string;
}

export async function readDocument(sql: Sql, id: string): Promise<string | undefined> {
  const [row] = await sql.query<TaskRow>("SELECT document FROM unreel.tasks WHERE id = $1", [
    asText(id),
  ]);
  return row?.document;
}

/** Whether the task is held under this lease. */
export async function holds(sql: Sql, id: string, lease: string): Promise<boolean> {
  const rows = await sql.query("SELECT 1 FROM unreel.tasks WHERE id = $1 AND lease = $2", [
    asText(id),
    asText(lease),
  ]);
  return rows.length > 0;
}

/** Newest first, `limit` at most. */
export async function readPage(sql: Sql, { limit, state, before }: ListQuery): Promise<TaskRow[]> {
  const conditions = [`seq < $2`, ...(state === undefined ? [] : ["state = $3"])];
  const rows = await sql.query<StoredRow>(
    `SELECT seq, document FROM unreel.tasks WHERE ${conditions.join(" AND ")}
     ORDER BY seq DESC LIMIT $1`,
    [limit, before ?? Number.MAX_SAFE_INTEGER, ...(state === undefined ? [] : [state])],
  );
  return rows.map(toRow);
}

/**
 * The row, other transactions' hands kept off it until this one is over.
 *
 * @throws ServiceError `not_found`.
 */
export async function lockRow(sql: Sql, id: string): Promise<TaskRow> {
  const row = await lockRowNoWait(sql, id, "");
  if (row === undefined) throw taskNotFoundError(id);
  return row;
}

/** As `lockRow`. @throws at once where another transaction has its hand on the row. */
export async function lockRowNoWait(
  sql: Sql,
  id: string,
  wait = "NOWAIT",
): Promise<TaskRow | undefined> {
  const [row] = await sql.query<StoredRow>(
    `SELECT seq, id, state, host, document, lease, deaths, job
     FROM unreel.tasks WHERE id = $1 FOR UPDATE ${wait}`,
    [asText(id)],
  );
  return row && toRow(row);
}

/** Resolves when no transaction has its hand on the row. */
export async function waitForRowLock(sql: Sql, id: string): Promise<void> {
  await sql.query("SELECT 1 FROM unreel.tasks WHERE id = $1 FOR SHARE", [id]);
}

/**
 * Writes a locked row and its event, and commits. As with every write the counters come last: other writes
 * wait from here on until the transaction is over, so the order of events is that of the commits.
 *
 * @returns the event's number.
 */
export async function saveRow(sql: Transaction, row: TaskRow, place: RowUpdate): Promise<number> {
  const queued = Number(place.state === "queued") - Number(row.state === "queued");
  const { state, document, lease, deaths, job } = place;
  const values = [row.seq, state, document, lease, deaths, job];
  const write = `UPDATE unreel.tasks
    SET state = $6, document = $7, lease = $8, deaths = $9, job = $10 WHERE seq = $5`;
  return writeWithEvent(sql, { write, values, queued, type: "task", id: row.id, json: document });
}

/** Removes a locked row; otherwise as `saveRow`. */
export async function removeRow(sql: Transaction, { seq, id, state }: TaskRow): Promise<number> {
  const queued = -Number(state === "queued");
  const write = "DELETE FROM unreel.tasks WHERE seq = $5";
  const json = JSON.stringify({ id });
  return writeWithEvent(sql, { write, values: [seq], queued, type: "deleted", id, json });
}

interface Write {
  /** Its parameters are counted from $5. */
  write: string;
  values: unknown[];
  /** Tasks by which the number of those that are queued grows. */
  queued: number;
  type: "task" | "deleted";
  id: string;
  json: string;
}

async function writeWithEvent(
  sql: Transaction,
  { write, values, queued, type, id, json }: Write,
): Promise<number> {
  const [row] = await sql.finish<{ number: string }>(
    `WITH written AS (${write}),
     counted AS (
       UPDATE unreel.counters SET events = events + 1, queued = queued + $1 RETURNING events AS number
     ),
     told AS (
       INSERT INTO unreel.task_events (number, type, task_id, json)
       SELECT number, $2, $3, $4 FROM counted
     )
     SELECT number, pg_notify('unreel_events', number::text) FROM counted`,
    [queued, type, id, json, ...values],
  );
  return Number(row?.number);
}

/** Postgres stores no NUL: what has one is as unknown as what has half a surrogate pair. */
function asText(id: string): string {
  return id.replaceAll("\0", "\uFFFD");
}

/** Whole numbers of eight bytes come as text. */
type StoredRow = Omit<TaskRow, "seq"> & { seq: string };

function toRow(row: StoredRow): TaskRow {
  return { ...row, seq: Number(row.seq) };
}
