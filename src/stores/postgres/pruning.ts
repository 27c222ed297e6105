import { feedBounds } from "../../feed/task-events.ts";
import type { Sql } from "./database.ts";

/** Events between two prunings. */
const interval = 1_000;

/** Whether the number of one of the newest `count` events is a multiple of 1,000. */
export function isPruningDue(number: number, count: number): boolean {
  return Math.floor(number / interval) > Math.floor((number - count) / interval);
}

/** Deletes the events that no feed reaches back to, and expired idempotency keys. */
export async function prune(sql: Sql, newest: number, now: Date): Promise<void> {
  const oldest = newest - feedBounds.maxEvents;
  await sql.query("DELETE FROM unreel.task_events WHERE number <= $1", [oldest]);
  await sql.query(
    `DELETE FROM unreel.idempotency_keys WHERE key IN
       (SELECT key FROM unreel.idempotency_keys WHERE ends_at <= $1 ORDER BY ends_at LIMIT 10000)`,
    [now],
  );
}
