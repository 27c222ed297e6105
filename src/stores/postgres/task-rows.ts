import type { KeyLimits } from "../../model/access-key.ts";
import type { StoredTask } from "../documents.ts";
import { taskNotFoundError } from "../rules.ts";
import type { ChangedColumns } from "../task-writes.ts";
import { asText, type Sql } from "./database.ts";

/** What an update writes of a task. */
export interface RowUpdate extends ChangedColumns, Pick<StoredTask, "lease"> {
  /** Id of the task's job; a task that is queued or claimed has one. */
  job: string | null;
}

/** What an insert writes of a task: not what all new ones have alike. */
export interface NewRow
  extends
    Omit<RowUpdate, "lease" | "stalledCount" | "idle" | "pageVideo">,
    Pick<StoredTask, "id" | "owner" | "listed" | "memberships" | "video"> {
  host: string;
}

export interface TaskRow extends StoredTask, RowUpdate {
  seq: number;
  host: string;
  /** Of the owner's key; null: it has none. */
  limits: KeyLimits | null;
}

/** Columns with their types and what they hold of the task. */
const writtenColumns = {
  state: ["text", ({ state }) => state],
  document: ["text", ({ document }) => document],
  job: ["uuid", ({ job }) => job],
  bytes: ["bigint", ({ bytes }) => bytes],
  finished_at: ["text", ({ finishedAt }) => finishedAt],
  site_video: ["bigint", ({ siteVideo }) => siteVideo],
} satisfies Record<string, Column<NewRow | RowUpdate>>;

export const updatedColumns = {
  ...writtenColumns,
  lease: ["text", ({ lease }) => lease],
  deaths: ["integer", ({ stalledCount }) => stalledCount],
  idle: ["integer", ({ idle }) => idle],
  page_video: ["bigint", ({ pageVideo }) => pageVideo],
} satisfies Record<string, Column<RowUpdate>>;

/** The columns that an insert writes, besides `seq`. */
export const insertedColumns = {
  id: ["text", ({ id }) => id],
  host: ["text", ({ host }) => host],
  owner: ["text", ({ owner }) => owner],
  listed: ["integer", ({ listed }) => listed],
  memberships: ["integer", ({ memberships }) => memberships],
  video: ["bigint", ({ video }) => video],
  ...writtenColumns,
} satisfies Record<string, Column<NewRow>>;

type Column<Row> = [type: string, value: (row: Row) => string | number | null];

/**
 * Returns the row, locked FOR UPDATE until the transaction ends.
 *
 * @throws ServiceError `not_found`.
 */
export async function lockRow(sql: Sql, id: string): Promise<TaskRow> {
  const row = await readForUpdate(sql, id, "");
  if (row === undefined) throw taskNotFoundError(id);
  return row;
}

/**
 * Returns the row, locked as by `lockRow`; undefined if there is none.
 *
 * @throws DatabaseError, see `isLockNotAvailable`, if another transaction has locked it.
 */
export async function lockRowNoWait(sql: Sql, id: string): Promise<TaskRow | undefined> {
  return readForUpdate(sql, id, "NOWAIT");
}

async function readForUpdate(sql: Sql, id: string, wait: "" | "NOWAIT"): Promise<TaskRow | undefined> {
  const read = `SELECT ${taskColumns} FROM unreel.tasks WHERE id = :id FOR UPDATE ${wait}`;
  const [row] = await sql.query<TaskRow>(read, { id: asText(id) });
  return row;
}

export const taskColumns = `seq, id, state, owner, host, document, lease, deaths AS "stalledCount", job, bytes,
  finished_at AS "finishedAt", listed, idle, memberships, video, page_video AS "pageVideo",
  site_video AS "siteVideo",
  (SELECT keys.document::json -> 'limits' FROM unreel.keys WHERE name = tasks.owner) AS limits`;

/** Resolves when no transaction has locked the row. */
export async function waitForRowLock(sql: Sql, id: string): Promise<void> {
  await sql.query("SELECT 1 FROM unreel.tasks WHERE id = :id FOR SHARE", { id });
}

/** Returns the error of a database without the row of counters, which the migrations write. */
export function noCountersError(): Error {
  return new Error("unreel.counters must have one row, and has none");
}

/** Adds to what an owner, `known`, uses already. */
export const addedUse = `queued = known.queued + excluded.queued, running = known.running + excluded.running,
      bytes = known.bytes + excluded.bytes, records = known.records + excluded.records`;
