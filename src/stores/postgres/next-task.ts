import { jobName, jobsSchema } from "./migrations.ts";
import type { Sql } from "./database.ts";

/**
 * Returns the `seq` of the task of the owner whose turn it is, its job locked; undefined if there is none. Passes
 * over jobs that other transactions have locked.
 */
export async function findNextTask(
  sql: Sql,
  exceptHosts: readonly string[],
): Promise<number | undefined> {
  const [row] = await sql.query<{ seq: string }>(statement, [exceptHosts]);
  return row && Number(row.seq);
}

/**
 * The oldest task in a state that may run now. `tasks_with_jobs` has them in this order; of each row, the job
 * tells whether it waits for a time or is held by a worker.
 */
const oldest = (state: string, condition: string) => `(
  SELECT tasks.seq FROM unreel.tasks CROSS JOIN LATERAL (
    SELECT FROM ${jobsSchema}.job
    WHERE job.name = '${jobName}' AND job.id = tasks.job
      AND job.state < 'active' AND job.start_after <= ${jobsSchema}.job_now()
    FOR UPDATE SKIP LOCKED
  ) AS claimable
  WHERE tasks.job IS NOT NULL AND coalesce(tasks.owner, '') = turn.owner AND tasks.state = '${state}'
    AND tasks.host <> ALL ($1) ${condition}
  ORDER BY tasks.seq LIMIT 1)`;

/**
 * Owners in the order of their turns, up to the first with a task: the inner queries run for one owner after
 * the other, and the condition on `quota` is checked before any task is read. `OFFSET 0` keeps the limit, which
 * is read from JSON, from being read for each task. The owner '' is never left out, so that its tasks run
 * even if a process of an earlier release has not counted them.
 */
const statement = `
  SELECT task.seq
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
  CROSS JOIN LATERAL (
    ${oldest("running", "")}
    UNION ALL
    ${oldest("queued", "AND (quota.max_running IS NULL OR turn.running < quota.max_running)")}
    ORDER BY seq LIMIT 1
  ) AS task
  ORDER BY turn.running, turn.claimed, turn.owner
  LIMIT 1`;
