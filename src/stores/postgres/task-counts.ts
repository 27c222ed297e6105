import type { State } from "../../task.ts";
import type { DamageReport } from "../damage-report.ts";
import type { ListedTask } from "../documents.ts";
import { emptyCounts } from "../rules.ts";
import type { TaskCounts } from "../store.ts";
import type { Sql } from "./database.ts";

/** Damaged records at the head of the queue that are passed over; `created_at` of a later task is not found. */
const maxDamaged = 10;

/** Counts the tasks by reading one index, and reads the oldest queued ones. */
export async function countTasks(sql: Sql, damage: DamageReport): Promise<TaskCounts> {
  const [counted, oldest] = await Promise.all([
    sql.query<{ state: State; tasks: string }>(
      "SELECT state, count(*) AS tasks FROM unreel.tasks GROUP BY state",
    ),
    sql.query<Omit<ListedTask, "seq"> & { seq: string }>(
      `SELECT seq, id, document FROM unreel.tasks WHERE state = 'queued' ORDER BY seq LIMIT ${maxDamaged + 1}`,
    ),
  ]);
  const byState = emptyCounts();
  for (const { state, tasks } of counted) byState[state] = Number(tasks);
  const tasks = oldest.map((row) => damage.parse({ ...row, seq: Number(row.seq) }));
  const first = tasks.find((task) => task !== undefined);
  return { byState, oldestQueuedAt: first?.created_at ?? null };
}
