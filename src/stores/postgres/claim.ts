import { claimDocument } from "../documents.ts";
import type { DamageReport } from "../damage-report.ts";
import { bytesLeft } from "../quotas.ts";
import type { Claim } from "../store.ts";
import type { Database, Transaction } from "./database.ts";
import { isLockNotAvailable } from "./database-errors.ts";
import type { FetchedJob, JobQueue } from "./job-queue.ts";
import { findNextTask, type NextTask, waitForJobLock } from "./next-task.ts";
import { lockRowNoWait, saveClaim, waitForRowLock } from "./task-rows.ts";

export interface ClaimOptions {
  database: Database;
  jobs: JobQueue;
  now: () => Date;
  damage: DamageReport;
}

/** A claim and the number of its event. */
export interface Claimed extends Claim {
  number: number;
}

/** Claims the task of the owner whose turn it is; returns undefined if there is none that may run now. */
export async function claimNextAndCommit(
  options: ClaimOptions,
  exceptHosts: readonly string[],
): Promise<Claimed | undefined> {
  const { database, jobs } = options;
  for (;;) {
    let next: NextTask | undefined;
    let fetched: FetchedJob | undefined;
    try {
      const claimed = await database.transaction(async (sql) => {
        next = await findNextTask(sql, exceptHosts);
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
  { jobs, now, damage }: ClaimOptions,
  sql: Transaction,
  { job, taskId, lease, leaseMs }: FetchedJob,
): Promise<Claimed | "unusable"> {
  const row = await lockRowNoWait(sql, taskId);
  const isCurrent = row?.job === job;
  const changed = isCurrent && damage.unlessDamaged(row, () => claimDocument(row, now()));
  if (!isCurrent || !changed) {
    await jobs.remove(sql, job);
    return "unusable";
  }
  const { task, stored, event } = changed;
  const { number, use } = await saveClaim(sql, row, { ...stored, lease, job }, event);
  const limits = row.limits ?? {};
  const { max_running: most = Infinity } = limits;
  if (row.state === "queued" && use.running > most) throw overQuota;
  const { stalledCount } = stored;
  return { task, lease, stalledCount, leaseMs, bytesLeft: bytesLeft(limits, use), number };
}
