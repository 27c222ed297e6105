import { claimDocument } from "../documents.ts";
import type { DamageReport } from "../damage-report.ts";
import type { Claim } from "../store.ts";
import type { Database, Transaction } from "./database.ts";
import { isLockNotAvailable } from "./database-errors.ts";
import type { FetchedJob, JobQueue } from "./job-queue.ts";
import { lockRowNoWait, saveRowAndCommit, waitForRowLock } from "./task-rows.ts";

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

/** Claims the oldest task that may run now; returns undefined if there is none. */
export async function claimNextAndCommit(
  options: ClaimOptions,
  exceptHosts: readonly string[],
): Promise<Claimed | undefined> {
  const { database, jobs } = options;
  for (;;) {
    let fetched: FetchedJob | undefined;
    try {
      const claimed = await database.transaction(async (sql) => {
        fetched = await jobs.fetch(sql, exceptHosts);
        return fetched && claimAndCommit(options, sql, fetched);
      });
      if (claimed !== "stray") return claimed;
    } catch (error) {
      if (fetched === undefined || !isLockNotAvailable(error)) throw error;
      // An update has locked the task and may need the job that this transaction has locked: let it finish first.
      await waitForRowLock(database, fetched.taskId);
    }
  }
}

/** Claims the job's task; removes the job if its task is gone, has another job or is damaged. */
async function claimAndCommit(
  { jobs, now, damage }: ClaimOptions,
  sql: Transaction,
  { job, taskId, lease, leaseMs }: FetchedJob,
): Promise<Claimed | "stray"> {
  const row = await lockRowNoWait(sql, taskId);
  const isCurrent = row?.job === job;
  const changed = isCurrent && damage.unlessDamaged(row, () => claimDocument(row, now()));
  if (!isCurrent || !changed) {
    await jobs.remove(sql, job);
    return "stray";
  }
  const { task, stored, event } = changed;
  const number = await saveRowAndCommit(sql, row, { ...stored, lease, job }, event);
  return { task, lease, stalledCount: stored.stalledCount, leaseMs, number };
}
