import type { Pool } from "pg";
import { onTestFinished } from "vitest";
import { connectionConfig, createDatabase } from "../../../src/stores/postgres/database.ts";
import { type EventFeed, openEventFeed } from "../../../src/stores/postgres/feed/feed.ts";
import { migrate } from "../../../src/stores/postgres/migrations.ts";
import { openDatabase } from "../../postgres/database.ts";

/** Creates a pool of connections, closed after the test. */
export function connect(url: string): Pool {
  const { pool, close } = createDatabase(connectionConfig(url), () => {});
  onTestFinished(close);
  return pool;
}

/** Creates a database with the tables of the store. */
export async function makeTables(): Promise<{ url: string; pool: Pool }> {
  const url = await openDatabase();
  const database = createDatabase(connectionConfig(url), () => {});
  onTestFinished(database.close);
  await migrate(database);
  return { url, pool: database.pool };
}

/** Writes an event as a store does at the end of each transaction. */
export async function write(pool: Pool, id: string, type = "task", json = JSON.stringify({ id })) {
  await pool.query(
    `WITH counted AS (UPDATE unreel.counters SET events = events + 1 RETURNING events),
     written AS (INSERT INTO unreel.task_events SELECT events, $1, $2, $3 FROM counted)
     SELECT pg_notify('unreel_events', events::text) FROM counted`,
    [type, id, json],
  );
}

/** Writes many events of an owner at once. */
export async function writeMany(pool: Pool, owner: string, count: number): Promise<void> {
  await pool.query(
    `WITH counted AS (UPDATE unreel.counters SET events = events + $1 RETURNING events)
     INSERT INTO unreel.task_events (number, type, task_id, json, owner)
     SELECT events - $1 + n, 'task', $2 || n, '{}', $2 FROM counted, generate_series(1, $1::integer) AS n`,
    [count, owner],
  );
}

export async function writeAll(pool: Pool, ids: readonly string[]): Promise<void> {
  for (const id of ids) await write(pool, id);
}

interface Following extends EventFeed {
  /** Ids of the tasks of the events so far. */
  received: string[];
  log: string[];
}

/** Opens a feed that connects to `url`. */
export async function follow(pool: Pool, url: string): Promise<Following> {
  const received: string[] = [];
  const log: string[] = [];
  const logger = {
    info: (message: unknown) => void log.push(String(message)),
    error: (_fields: unknown, message?: string) => void log.push(String(message)),
  };
  const feed = await openEventFeed({ pool, connection: connectionConfig(url), logger });
  onTestFinished(() => feed.close());
  feed.events.subscribe(({ taskId }) => received.push(taskId));
  return { ...feed, received, log };
}

export function idsAfter({ events }: EventFeed, id: string): string[] | undefined {
  return events.since(id)?.map(({ taskId }) => taskId);
}

export function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_each, n) => `${prefix}${n}`);
}

/** For work of another process. */
export const pollOptions = { timeout: 60_000, interval: 5 };
