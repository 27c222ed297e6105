import { claimDocument } from "../task-writes.ts";
import { bytesLeft } from "../quotas.ts";
import type { ClaimExceptions } from "../rules.ts";
import type { Claim } from "../store.ts";
import type { Database, Sql, Transaction } from "./database.ts";
import { isLockNotAvailable } from "./database-errors.ts";
import type { FetchedJob } from "./job-queue.ts";
import { type EventNumbers, followAll, lockFollowers, type MemberDeps, writeChanges } from "./members/member-rows.ts";
import { jobName, jobsSchema } from "./migrations.ts";
import { lockRowNoWait, waitForRowLock } from "./task-rows.ts";

interface ClaimOptions extends MemberDeps {
  database: Database;
}

type Claimed = Claim & EventNumbers;

/** Claims the task of the owner whose turn it is; returns undefined if there is none that may run now. */
export async function claimNextAndCommit(options: ClaimOptions, except: ClaimExceptions): Promise<Claimed | undefined> {
  const { database, jobs } = options;
  for (;;) {
    let next: NextTask | undefined;
    let fetched: FetchedJob | undefined;
    try {
      const claimed = await database.transaction(async (sql) => {
        next = await findNextTask(sql, except);
        fetched = next?.seq == null ? undefined : await jobs.fetch(sql, next.seq);
        return fetched && claimAndCommit(options, sql, fetched);
      });
      // Others are claiming all tasks of the owner whose turn it is. Whose turn is next depends on them.
      if (next?.seq === null) await waitForJobLock(database, next.oldestJob);
      else if (claimed !== "unusable") return claimed;
    } catch (error) {
      if (error === overQuota) continue;
      if (fetched === undefined || !isLockNotAvailable(error)) throw error;
      // An update has locked the task and may need the job that this transaction has locked: let it finish first.
      await waitForRowLock(database, fetched.taskId);
    }
  }
}

/** Thrown to roll back: another process has claimed a task of the owner at the same moment. */
const overQuota = new Error("the owner runs as many tasks as its key allows");

/** Claims the job's task; removes the job if its task is damaged, gone or has another job. */
async function claimAndCommit(
  options: ClaimOptions,
  sql: Transaction,
  { job, taskId, lease, leaseMs }: FetchedJob,
): Promise<Claimed | "unusable"> {
  const { jobs, now, damage } = options;
  const row = await lockRowNoWait(sql, taskId);
  const isCurrent = row?.job === job;
  const changed = isCurrent && damage.unlessDamaged(row, () => claimDocument(row, now()));
  if (!isCurrent || !changed) {
    await jobs.remove(sql, job);
    return "unusable";
  }
  const limits = row.limits ?? {};
  const followers = await lockFollowers(sql, [row], changed.stored.state);
  const changes = [{ row, written: changed, held: { job, lease } }, ...followAll(followers, options)];
  const run = row.limits === null ? sql.queryAndCommit : sql.query;
  const { number, use } = await writeChanges(run, sql, changes, options, { isClaim: true });
  const { max_running: most = Infinity } = limits;
  if (row.state === "queued" && use.running > most) throw overQuota;
  const { task, stored } = changed;
  const claim = { task, lease, stalledCount: stored.stalledCount, leaseMs, bytesLeft: bytesLeft({ limits, use }) };
  return { ...claim, number, count: changes.length };
}

/** The owner whose turn it is has tasks that may run now. */
interface NextTask {
  /** Of its oldest task whose job no other transaction has locked; its job is locked. Null: there is none. */
  seq: number | null;
  oldestJob: string;
}

/** Returns undefined if there is no task that may run now. Does not wait for locks. */
async function findNextTask(sql: Sql, { exceptHosts, exceptOwners }: ClaimExceptions): Promise<NextTask | undefined> {
  const [next] = await sql.query<NextTask>(nextTask, { exceptHosts, exceptOwners });
  return next;
}

/** Resolves when no transaction has locked the job. */
async function waitForJobLock(sql: Sql, job: string): Promise<void> {
  const wait = `SELECT FROM ${jobsSchema}.job WHERE name = '${jobName}' AND id = :job FOR SHARE`;
  await sql.query(wait, { job });
}

/**
 * The oldest task of `turn.owner` in a state that may run now. `tasks_with_jobs` has them in this order; of each
 * row, the job says whether it waits for a time or is held by a worker. `lock`, a locking clause or `OFFSET 0`,
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
    AND tasks.host <> ALL (:exceptHosts) ${condition}
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
const nextTask = `
  SELECT turn.job AS "oldestJob", free.seq
  FROM (
    SELECT turn.owner, turn.running, max_running, task.*
    FROM (
      SELECT owner, running, claimed FROM unreel.owners
      WHERE (queued + running > 0 OR owner = '') AND owner <> ALL (:exceptOwners) ORDER BY running, claimed, owner
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
