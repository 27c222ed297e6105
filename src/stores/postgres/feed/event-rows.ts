import type { ClientBase } from "pg";
import { feedBounds, type TaskEvent } from "../../../feed/task-events.ts";
import { type State, states } from "../../../model/task.ts";
import type { Sql } from "../database.ts";
import { noCountersError } from "../task-rows.ts";

/** A client, or a pool of them. */
export type Queryable = Pick<ClientBase, "query">;

export interface EventRow {
  number: number;
  /** Of its JSON and that of the rows before it in what was read. */
  bytes: number;
  type: TaskEvent["type"];
  task_id: string;
  owner: string | null;
  json: string;
}

export function toEvent({ type, task_id: taskId, owner, json }: EventRow): TaskEvent {
  const state = type === "task" ? stateOf(json) : undefined;
  const isFinishRequested = state === "running" && json.includes(finishRequest);
  const isRetryable = state === "failed" && json.includes(retryableError);
  return { type, taskId, state, isFinishRequested, isRetryable, owner, json };
}

/**
 * Finds the state without parsing: the task's own member comes before any other object that could have one
 * of this name, and a quote within a string is escaped.
 */
function stateOf(json: string): State | undefined {
  const [, found] = /"state":"([a-z]+)"/.exec(json) ?? [];
  return states.find((state) => state === found);
}

/** As they are written in the JSON of a task. */
const finishRequest = `"finish_requested":true`;
const retryableError = `"retryable":true`;

/** Events that are read at a time, and the bytes of JSON after which no more are. */
const pageSize = 200;
const pageBytes = 1_000_000;

export async function readCounters(client: Queryable): Promise<{ feedId: string; newest: number }> {
  const { rows } = await client.query<{ feedId: string; newest: number }>(
    `SELECT feed_id AS "feedId", events AS newest FROM unreel.counters`,
  );
  const [row] = rows;
  if (row === undefined) throw noCountersError();
  return row;
}

/** Reads no more than a feed keeps: text has at least as many octets as UTF-16 units. */
export async function readPast(client: Queryable): Promise<EventRow[]> {
  const { rows } = await client.query<EventRow>(
    `SELECT number, type, task_id, owner, json, bytes FROM (
       SELECT *, sum(octet_length(json)) OVER (ORDER BY number DESC) AS bytes
       FROM unreel.task_events ORDER BY number DESC LIMIT $1
     ) AS newest WHERE bytes <= $2 ORDER BY number`,
    [feedBounds.maxEvents, feedBounds.maxLength],
  );
  return rows;
}

/**
 * Reads those up to this number that are left of owners, of each the newest ones: the second newest of one before the third newest of
 * another, until it is as much text as a feed keeps.
 */
export async function readOlder(client: Queryable, number: number): Promise<EventRow[]> {
  const { rows } = await client.query<EventRow>(
    `SELECT number, type, task_id, owner, json FROM (
       SELECT *, sum(octet_length(json)) OVER (ORDER BY place, number DESC) AS bytes FROM (${placedUpTo("$1")}) AS placed
     ) AS older WHERE bytes <= $2 ORDER BY number`,
    [number, feedBounds.maxLength],
  );
  return rows;
}

/** Returns a query of the events of owners up to a number, with their places counted from the owner's newest of them. */
function placedUpTo(number: string): string {
  return `SELECT *, row_number() OVER (PARTITION BY owner ORDER BY number DESC) AS place
    FROM unreel.task_events WHERE number <= ${number} AND owner IS NOT NULL`;
}

/** Yields the events after a number, in pages, until there are no more. */
export async function* readNext(client: Queryable, newest: () => number): AsyncGenerator<EventRow[]> {
  let page: EventRow[];
  do {
    page = await readAfter(client, newest());
    yield page;
  } while (page.length === pageSize || (page.at(-1)?.bytes ?? 0) >= pageBytes);
}

async function readAfter(client: Queryable, number: number): Promise<EventRow[]> {
  const { rows } = await client.query<EventRow>(
    `SELECT number, type, task_id, owner, json, bytes FROM (
       SELECT *, sum(octet_length(json)) OVER (ORDER BY number) AS bytes
       FROM unreel.task_events WHERE number > $1 ORDER BY number LIMIT ${pageSize}
     ) AS next WHERE bytes - octet_length(json) < ${pageBytes} ORDER BY number`,
    [number],
  );
  return rows;
}

/** Events between two prunings. */
const pruningInterval = 1_000;

/** Whether the number of one of the newest `count` events is a multiple of 1,000. */
export function isPruningDue(number: number, count: number): boolean {
  return Math.floor(number / pruningInterval) > Math.floor((number - count) / pruningInterval);
}

/** Older events that are kept, as in `readOlder`: for owners whose events those of others would push out. */
const maxOlder = 2_000;

/** Deletes the events that no feed reaches back to, and expired idempotency keys. */
export async function prune(sql: Sql, newest: number, now: Date): Promise<void> {
  await sql.query(
    `DELETE FROM unreel.task_events WHERE number <= :oldest AND number NOT IN
       (SELECT number FROM (${placedUpTo(":oldest")}) AS placed ORDER BY place, number DESC LIMIT ${maxOlder})`,
    { oldest: newest - feedBounds.maxEvents },
  );
  await sql.query(
    `DELETE FROM unreel.idempotency_keys WHERE key IN
       (SELECT key FROM unreel.idempotency_keys WHERE ends_at <= :now ORDER BY ends_at LIMIT 10000)`,
    { now },
  );
}
