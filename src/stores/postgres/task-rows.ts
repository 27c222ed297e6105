import type { KeyLimits } from "../../model/access-key.ts";
import type { State } from "../../model/task.ts";
import type { TaskEvent } from "../../feed/task-events.ts";
import type { StoredTask } from "../documents.ts";
import { noUse, type OwnerUse, useChange } from "../quotas.ts";
import { taskNotFoundError } from "../rules.ts";
import { asText, type Query, type Sql } from "./database.ts";

/** What an update writes of a task. */
export interface RowUpdate extends Omit<StoredTask, "id" | "owner" | "listed" | "memberships" | "video"> {
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

/** The columns that an update writes. */
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
  const row = await lockRowNoWait(sql, id, "");
  if (row === undefined) throw taskNotFoundError(id);
  return row;
}

/**
 * Returns the row, locked as by `lockRow`; undefined if there is none.
 *
 * @throws DatabaseError, see `isLockNotAvailable`, if another transaction has locked it.
 */
export async function lockRowNoWait(sql: Sql, id: string, wait = "NOWAIT"): Promise<TaskRow | undefined> {
  const read = `SELECT ${taskColumns} FROM unreel.tasks WHERE id = :id FOR UPDATE ${wait}`;
  const [row] = await sql.query<TaskRow>(read, { id: asText(id) });
  return row;
}

/** What a `TaskRow` has. */
export const taskColumns = `seq, id, state, owner, host, document, lease, deaths AS "stalledCount", job, bytes,
  finished_at AS "finishedAt", listed, idle, memberships, video, page_video AS "pageVideo",
  site_video AS "siteVideo",
  (SELECT keys.document::json -> 'limits' FROM unreel.keys WHERE name = tasks.owner) AS limits`;

/** Resolves when no transaction has locked the row. */
export async function waitForRowLock(sql: Sql, id: string): Promise<void> {
  await sql.query("SELECT 1 FROM unreel.tasks WHERE id = :id FOR SHARE", { id });
}

interface Written {
  /** Number of the event. */
  number: number;
  /** Of the owner, after the write; zeros if the write does not change it. */
  use: OwnerUse;
  /** Queued tasks of all owners, after the write. */
  waiting: number;
}

/**
 * Writes a locked row with its event. As in every write the counters come last,
 * one row for all, and after them the owner's row: from then on other writes wait for the commit, so events are numbered
 * in the order of the commits.
 *
 * @param run `queryAndCommit` of the transaction, or `query` if the caller first checks the result.
 * @param given.isClaim Whether this is the owner's last claim; default: no.
 */
export async function writeRow(
  run: Query,
  row: TaskRow,
  after: RowUpdate,
  { type, taskId, json, owner }: TaskEvent,
  { isClaim = false } = {},
): Promise<Written> {
  const change = useChange(row, after);
  const countChange = (state: State) => Number(after.state === state) - Number(row.state === state);
  const columns = Object.entries(updatedColumns).map(([name, [, of]]) => [name, of(after)]);
  const [written] = await run<Written & { [Name in keyof OwnerUse]: number | null }>(updateStatement, {
    ...Object.fromEntries(columns),
    seq: row.seq,
    type,
    taskId,
    json,
    eventOwner: owner,
    owner: owner ?? "",
    isClaim,
    hasUse: isClaim || change !== noUse,
    moreQueued: change.queued,
    moreRunning: change.running,
    moreBytes: change.bytes,
    moreRecords: change.records,
    moreSucceeded: countChange("succeeded"),
    moreFailed: countChange("failed"),
    moreCanceled: countChange("canceled"),
  });
  if (written === undefined) throw noCountersError();
  const { number, waiting, queued, running, bytes, records } = written;
  const use = { queued: queued ?? 0, running: running ?? 0, bytes: bytes ?? 0, records: records ?? 0 };
  return { number, waiting, use };
}

/** Returns the error of a database without the row of counters, which the migrations write. */
export function noCountersError(): Error {
  return new Error("unreel.counters must have one row, and has none");
}

/** Adds to what an owner, `known`, uses already. */
export const addedUse = `queued = known.queued + excluded.queued, running = known.running + excluded.running,
      bytes = known.bytes + excluded.bytes, records = known.records + excluded.records`;

const assignments = Object.keys(updatedColumns).map((name) => `${name} = :${name}`);

const updateStatement = `
  WITH written AS (UPDATE unreel.tasks SET ${assignments.join(", ")} WHERE seq = :seq),
  counted AS (
    UPDATE unreel.counters SET events = events + 1, counted_events = counted_events + 1,
      queued = queued + :moreQueued, running = running + :moreRunning,
      succeeded = succeeded + :moreSucceeded, failed = failed + :moreFailed,
      canceled = canceled + :moreCanceled
    RETURNING events AS number, queued AS waiting
  ),
  published AS (
    INSERT INTO unreel.task_events (number, type, task_id, json, owner)
    SELECT number, :type, :taskId, :json, :eventOwner FROM counted
  ),
  owned AS (
    INSERT INTO unreel.owners AS known (owner, queued, running, bytes, records, claimed)
    SELECT :owner, :moreQueued, :moreRunning, :moreBytes, :moreRecords, CASE WHEN :isClaim THEN number ELSE 0 END
    FROM counted WHERE :hasUse
    ON CONFLICT (owner) DO UPDATE SET ${addedUse}, claimed = greatest(known.claimed, excluded.claimed)
    RETURNING queued, running, bytes, records
  )
  SELECT number, waiting, queued, running, bytes, records, pg_notify('unreel_events', number::text)
  FROM counted LEFT JOIN owned ON true`;
