import { type State, states } from "../../model/task.ts";
import type { DamageReport } from "../damage-report.ts";
import type { ListedTask } from "../documents.ts";
import { emptyCounts } from "../rules.ts";
import type { TaskCounts } from "../store.ts";
import type { Sql } from "./database.ts";

/** Damaged records at the head of the queue that are skipped; if there are more, the oldest task's time is not found. */
const maxDamaged = 10;

/** Reads the counts and the oldest queued tasks. */
export async function countTasks(sql: Sql, damage: DamageReport): Promise<TaskCounts> {
  const [byState, oldest] = await Promise.all([
    readCounts(sql),
    sql.query<Omit<ListedTask, "seq"> & { seq: string }>(
      `SELECT seq, id, document FROM unreel.tasks WHERE state = 'queued' ORDER BY seq LIMIT ${maxDamaged + 1}`,
    ),
  ]);
  const tasks = oldest.map((row) => damage.parse({ ...row, seq: Number(row.seq) }));
  const first = tasks.find((task) => task !== undefined);
  return { byState, oldestQueuedAt: first?.created_at ?? null };
}

/** Counts the rows if a process of an earlier release has written one since they were counted. */
async function readCounts(sql: Sql): Promise<TaskCounts["byState"]> {
  const [counters] = await sql.query<Record<State, string> & { isExact: boolean }>(
    `SELECT queued, running, succeeded, failed, canceled, counted_events = events AS "isExact"
     FROM unreel.counters`,
  );
  const byState = emptyCounts();
  if (counters?.isExact === true) {
    for (const state of states) byState[state] = Number(counters[state]);
    return byState;
  }
  const counted = await sql.query<{ state: State; tasks: string }>(
    "SELECT state, count(*) AS tasks FROM unreel.tasks GROUP BY state",
  );
  for (const { state, tasks } of counted) byState[state] = Number(tasks);
  return byState;
}
