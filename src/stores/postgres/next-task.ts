import { jobName, jobsSchema } from "./migrations.ts";
import type { Sql } from "./database.ts";

/** The owner whose turn it is has tasks that may run now. */
export interface NextTask {
  /** Of its oldest task whose job no other transaction has locked; its job is locked. Null: there is none. */
  seq: number | null;
  /** Job of its oldest task. */
  oldestJob: string;
}

/** Returns undefined if there is no task that may run now. Does not wait for locks. */
export async function findNextTask(
  sql: Sql,
  exceptHosts: readonly string[],
): Promise<NextTask | undefined> {
  const [row] = await sql.query<NextRow>(statement, [exceptHosts]);
  return row && { ...row, seq: row.seq === null ? null : Number(row.seq) };
}

/** Resolves when no transaction has locked the job. */
export async function waitForJobLock(sql: Sql, job: string): Promise<void> {
  await sql.query(waitForLock, [job]);
}

const waitForLock = `
  SELECT FROM ${jobsSchema}.job WHERE name = '${jobName}' AND id = $1 FOR SHARE`;

/** The driver returns a bigint as text. */
type NextRow = Omit<NextTask, "seq"> & { seq: string | null };

/**
 * The oldest task of `turn.owner` in a state that may run now. `tasks_with_jobs` has them in this order; of each
 * row, the job tells whether it waits for a time or is held by a worker. `lock`, a locking clause or `OFFSET 0`,
 * keeps the planner from reading other jobs.
 */
const oldestIn = (state: string, condition: string, lock: string) => `(
  SELECT tasks.seq, tasks.job FROM unreel.tasks CROSS JOIN LATERAL (
    SELECT FROM ${jobsSchema}.job
    WHERE job.name = '${jobName}' AND job.id = tasks.job
      AND job.state < 'active' AND job.start_after <= ${jobsSchema}.job_now()
    ${lock}
  ) AS claimable
  WHERE tasks.job IS NOT NULL AND coalesce(tasks.owner, '') = turn.owner AND tasks.state = '${state}'
    AND tasks.host <> ALL ($1) ${condition}
  ORDER BY tasks.seq LIMIT 1)`;

/** The oldest task of `turn.owner` that may run now. The condition on the quota is checked before any task is read. */
const oldest = (lock: string, condition = "") => `(
  ${oldestIn("running", condition, lock)}
  UNION ALL
  ${oldestIn("queued", `${condition} AND (max_running IS NULL OR turn.running < max_running)`, lock)}
  ORDER BY seq LIMIT 1)`;

/**
 * The inner `turn` has the owners in the order of their turns. `task` runs for one after the other, up to the
 * first with a task, and locks nothing. The outer `turn` is this owner; `free` is its oldest task whose job no
 * other transaction has locked, and locks it. `OFFSET 0` keeps the limit, which is read from JSON, from being read for
 * each task. The owner '' is never left out, so that its tasks run even if a process of an earlier release has
 * not counted them.
 */
const statement = `
  SELECT turn.job AS "oldestJob", free.seq
  FROM (
    SELECT turn.owner, turn.running, max_running, task.*
    FROM (
      SELECT owner, running, claimed FROM unreel.owners
      WHERE queued + running > 0 OR owner = '' ORDER BY running, claimed, owner
    ) AS turn
    CROSS JOIN LATERAL (
      SELECT (
        SELECT (document::json -> 'limits' ->> 'max_running')::bigint FROM unreel.keys
        WHERE name = turn.owner
      ) AS max_running OFFSET 0
    ) AS quota
    CROSS JOIN LATERAL ${oldest("OFFSET 0")} AS task
    ORDER BY turn.running, turn.claimed, turn.owner
    LIMIT 1
  ) AS turn
  LEFT JOIN LATERAL ${oldest("FOR UPDATE SKIP LOCKED", "AND tasks.seq >= turn.seq")} AS free ON true`;
