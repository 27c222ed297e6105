import { feedBounds } from "../../task-events.ts";
import type { Sql } from "./database.ts";

/** Events between two clearances. */
const interval = 1_000;

/** Whether one of the newest `count` events is one in a thousand, behind which is cleared. */
export function isPruningDue(number: number, count: number): boolean {
  return Math.floor(number / interval) > Math.floor((number - count) / interval);
}

/** Forgets the events that no feed reaches back to, and the idempotency keys that have ended. */
export async function prune(sql: Sql, newest: number, now: Date): Promise<void> {
  const oldest = newest - feedBounds.maxEvents;
  await sql.query("DELETE FROM unreel.task_events WHERE number <= $1", [oldest]);
  await sql.query(
    `DELETE FROM unreel.idempotency_keys WHERE key IN
       (SELECT key FROM unreel.idempotency_keys WHERE ends_at <= $1 ORDER BY ends_at LIMIT 10000)`,
    [now],
  );
}
