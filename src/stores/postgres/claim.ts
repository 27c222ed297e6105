import type { Task } from "../../task.ts";
import { toRunning } from "../rules.ts";
import type { Claim } from "../store.ts";
import type { Database, Transaction } from "./database.ts";
import { isLockNotAvailable } from "./database-errors.ts";
import type { FetchedJob, JobQueue } from "./job-queue.ts";
import { waitForRowLock, saveRow, lockRowNoWait } from "./task-rows.ts";

export interface ClaimOptions {
  database: Database;
  jobs: JobQueue;
  now: () => Date;
}

/** A claim and the number of its event. */
export interface Claimed extends Claim {
  number: number;
}

/** Takes the oldest task that may run now. */
export async function claimNext(
  options: ClaimOptions,
  exceptHosts: readonly string[],
): Promise<Claimed | undefined> {
  const { database, jobs } = options;
  for (;;) {
    let delivered: FetchedJob | undefined;
    try {
      const claimed = await database.transaction(async (sql) => {
        delivered = await jobs.fetch(sql, exceptHosts);
        return delivered && start(options, sql, delivered);
      });
      if (claimed !== "stray") return claimed;
    } catch (error) {
      if (delivered === undefined || !isLockNotAvailable(error)) throw error;
      // An update has its hand on the task and may want the job that was in ours: it goes first.
      await waitForRowLock(database, delivered.taskId);
    }
  }
}

/** A job whose task is gone or has another one is taken away. */
async function start(
  { jobs, now }: ClaimOptions,
  sql: Transaction,
  { job, taskId, lease, leaseMs }: FetchedJob,
): Promise<Claimed | "stray"> {
  const row = await lockRowNoWait(sql, taskId);
  if (row?.job !== job) {
    await jobs.remove(sql, job);
    return "stray";
  }
  const before: Task = JSON.parse(row.document);
  const task = toRunning(before, now());
  const deaths = row.deaths + Number(row.state === "running");
  const place = { state: task.state, document: JSON.stringify(task), lease, deaths, job };
  const number = await saveRow(sql, row, place);
  return { task, lease, stalledCount: deaths, leaseMs, number };
}
