import { noTasks } from "../../feed/collection-changes.ts";
import { type State, states } from "../../model/task.ts";
import { type DamageReport, type ListedTask, maxPageBytes, type PageRow } from "../documents.ts";
import type { ListQuery, TaskCounts } from "../store.ts";
import type { StoredFile, StoredFilesQuery } from "../store-types.ts";
import { asText, type Sql } from "./database.ts";

/** Returns the record of a task; undefined if there is none. */
export async function readDocument(sql: Sql, id: string): Promise<string | undefined> {
  const read = "SELECT document FROM unreel.tasks WHERE id = :id";
  const [row] = await sql.query<Pick<ListedTask, "document">>(read, { id: asText(id) });
  return row?.document;
}

/** Whether this lease holds the task. */
export async function holds(sql: Sql, id: string, lease: string): Promise<boolean> {
  const find = "SELECT 1 FROM unreel.tasks WHERE id = :id AND lease = :lease";
  return (await sql.query(find, { id: asText(id), lease: asText(lease) })).length > 0;
}

/**
 * Returns at most `limit` rows, newest first, or members by index, which stands for `seq`; those after the end of the page
 * without their documents.
 */
export async function readPage(sql: Sql, query: ListQuery): Promise<PageRow[]> {
  const { limit, state, owner, parent, before } = query;
  if (parent !== undefined) {
    return sql.query(boundPage(membersOf(state), "ASC"), { limit, state, parent: asText(parent), before: before ?? 0 });
  }
  const values = { limit, state, owner: owner && asText(owner), before: before ?? Number.MAX_SAFE_INTEGER };
  return sql.query(boundPage(listed(query), "DESC"), values);
}

const boundPage = (found: string, order: "ASC" | "DESC") => `
  SELECT seq, id, CASE WHEN bytes - octet_length(document) <= ${maxPageBytes} THEN document END AS document
  FROM (
    SELECT seq, id, document, sum(octet_length(document)) OVER (ORDER BY seq ${order}) AS bytes
    FROM (${found} ORDER BY seq ${order} LIMIT :limit) AS found
  ) AS summed ORDER BY seq ${order}`;

/**
 * At most `limit` tasks of each state are read, in the order of an index: else the planner sorts all if it thinks that they are few. For the first page,
 * the state is not known to be one alone: else the planner reads the tasks by `seq`, and so all that are queued before the newest that has ended.
 */
function listed({ state, owner, before }: ListQuery): string {
  const ofOwner = owner === undefined ? "" : "AND owner = :owner";
  const inState = (value: string) => (before === undefined ? `BETWEEN ${value} AND ${value}` : `= ${value}`);
  const part = (value: string) => `SELECT * FROM (SELECT seq, id, document FROM unreel.tasks
    WHERE state ${inState(value)} AND listed = 1 AND seq < :before ${ofOwner} ORDER BY state, seq DESC LIMIT :limit) AS part`;
  return state === undefined ? states.map((each) => part(`'${each}'`)).join(" UNION ALL ") : part(":state");
}

function membersOf(state: State | undefined): string {
  return `SELECT place::bigint AS seq, tasks.id, document FROM unreel.members JOIN unreel.tasks ON seq = task
    WHERE collection = (SELECT seq FROM unreel.tasks WHERE id = :parent) AND place > :before
    ${state === undefined ? "" : "AND state = :state"}`;
}

/** Returns how many bytes the files of all tasks have together. */
export async function readStoredBytes(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ bytes: number }>(
    "SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM unreel.owners",
  );
  return row?.bytes ?? 0;
}

/** Returns files of tasks, those first that finished first. */
export async function readOldestFiles(sql: Sql, { limit, after }: StoredFilesQuery): Promise<StoredFile[]> {
  return sql.query(
    `SELECT id, seq, bytes, finished_at AS "finishedAt" FROM unreel.tasks
     WHERE bytes > 0 AND (finished_at, seq) > (:finishedAt, :seq)
     ORDER BY finished_at, seq LIMIT :limit`,
    { finishedAt: "", seq: 0, ...after, limit },
  );
}

/** Damaged records at the head of the queue that are skipped; if there are more, the oldest task's time is not found. */
const maxDamaged = 10;

/**
 * In the order of `tasks_by_state`, in which the state must not be known to be one alone: else the planner reads the tasks by `seq`, and so all that
 * have ended before the first that is queued.
 */
const oldestQueued = (isListed: 0 | 1) => `
  (SELECT seq, id, document FROM unreel.tasks WHERE state BETWEEN 'queued' AND 'queued' AND listed = ${isListed}
  ORDER BY state DESC, seq LIMIT ${maxDamaged + 1})`;

/** Reads the counts and the oldest queued tasks. */
export async function countTasks(sql: Sql, damage: DamageReport): Promise<TaskCounts> {
  const [byState, oldest] = await Promise.all([
    readCounts(sql),
    sql.query<ListedTask>(`${oldestQueued(0)} UNION ALL ${oldestQueued(1)} ORDER BY seq LIMIT ${maxDamaged + 1}`),
  ]);
  const first = oldest.map(damage.parse).find((task) => task !== undefined);
  return { byState, oldestQueuedAt: first?.created_at ?? null };
}

/** Counts the rows if a process of an earlier release has written one since they were counted. */
async function readCounts(sql: Sql): Promise<TaskCounts["byState"]> {
  const [counters] = await sql.query<TaskCounts["byState"] & { isExact: boolean }>(
    `SELECT queued, running, succeeded, failed, canceled, counted_events = events AS "isExact"
     FROM unreel.counters`,
  );
  const byState = { ...noTasks };
  if (counters?.isExact === true) {
    for (const state of states) byState[state] = counters[state];
    return byState;
  }
  const counted = await sql.query<{ state: State; tasks: number }>(
    "SELECT state, count(*) AS tasks FROM unreel.tasks GROUP BY state",
  );
  for (const { state, tasks } of counted) byState[state] = tasks;
  return byState;
}
