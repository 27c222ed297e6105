import { PgBoss, type ConstructorOptions, type JobInsert } from "pg-boss";
import type { Connection, Sql } from "./database.ts";
import { jobName as queue, jobsSchema } from "./migrations.ts";

/** A task to be queued. */
interface JobRequest {
  /** Id of its job, a new UUID; null: it gets none. */
  job: string | null;
  id: string;
  seq: number;
  host: string;
  /** How long it waits, by the database's clock; default 0. */
  delayMs?: number | undefined;
}

export interface FetchedJob {
  job: string;
  taskId: string;
  /** Identifies this fetch of the job. */
  lease: string;
  /** How long it lasts without a heartbeat, as set when the job was added. */
  leaseMs: number;
}

/** The jobs of the queued and the claimed tasks, one for each task. Statements run on the caller's `sql`. */
export interface JobQueue {
  add(sql: Sql, requests: readonly JobRequest[]): Promise<void>;
  /** Fetches the job of the task with this `seq`; undefined if it may not run now. */
  fetch(sql: Sql, seq: number): Promise<FetchedJob | undefined>;
  /** Sends a heartbeat; false if the lease is lost. */
  touch(sql: Sql, lease: string): Promise<boolean>;
  remove(sql: Sql, jobs: string | string[]): Promise<void>;
  close(): Promise<void>;
}

export interface JobQueueOptions {
  connection: Connection;
  /** Seconds without a heartbeat after which a worker counts as dead, at least 10. */
  heartbeatS: number;
  /** Default: the system's and the database's. */
  clock?: ConstructorOptions["clock"] | undefined;
  /** Gets problems of background work. */
  onWarning: (event: { message: string }) => void;
}

/** For the search for dead workers; all else runs on the caller's connection. */
const connections = 2;

/** How often pg-boss looks for dead workers. */
const supervisionIntervalS = 3;

/** Only missing heartbeats end a fetch, and only a change of the task's state ends its job. */
const endless = { expireInSeconds: 10 * 366 * 86_400, retentionSeconds: 10 * 366 * 86_400 };
const maxInteger = 2 ** 31 - 1;

/** Opens pg-boss and migrates its tables. */
export async function openJobQueue({ connection, heartbeatS, clock, onWarning }: JobQueueOptions): Promise<JobQueue> {
  const boss = new PgBoss({
    ...connection,
    max: connections,
    ...(clock && { clock }),
    schema: jobsSchema,
    createSchema: false,
    schedule: false,
    superviseIntervalSeconds: supervisionIntervalS,
    monitorIntervalSeconds: supervisionIntervalS,
    flowIntervalSeconds: 3_600,
    warningQueueSize: maxInteger,
  });
  boss.on("error", onWarning).on("warning", onWarning);
  try {
    await boss.start();
    await boss.createQueue(queue);
  } catch (error) {
    await boss.stop({ graceful: false });
    throw error;
  }

  return {
    async add(sql, requests) {
      const limits = { ...endless, heartbeatSeconds: heartbeatS, retryLimit: maxInteger, retryDelay: 0 };
      const jobs = requests.flatMap(({ job, ...request }) =>
        job === null ? [] : { ...toJob(request), ...limits, id: job },
      );
      if (jobs.length > 0) await boss.insert(queue, jobs, { db: executor(sql) });
    },
    async fetch(sql, seq) {
      const only = { minPriority: -seq, maxPriority: -seq };
      const [job] = await boss.fetch<{ id: string }>(queue, { ...only, db: executor(sql) });
      if (job === undefined) return undefined;
      const leaseMs = 1_000 * (job.heartbeatSeconds ?? heartbeatS);
      return { job: job.id, taskId: job.data.id, lease: `${job.id}/${job.retryCount}`, leaseMs };
    },
    async touch(sql, lease) {
      const [id = "", retryCount] = lease.split("/");
      const attempt = { id, retryCount: Number(retryCount) };
      const result: { affected?: number } = await boss.touch(queue, attempt, { db: executor(sql) });
      return result.affected === 1;
    },
    async remove(sql, removed) {
      await boss.deleteJob(queue, removed, { db: executor(sql) });
    },
    close: () => boss.stop({ graceful: false }),
  };
}

/**
 * The priority is that of the task: the oldest has the highest, and no two have the same. A job without a delay
 * is due long ago: claims compare with the time at which their transaction began, and the database's clock may be set back.
 */
function toJob({ id, seq, host, delayMs = 0 }: Omit<JobRequest, "job">): JobInsert {
  const startAfter = delayMs > 0 ? `${delayMs} milliseconds` : "-1 year";
  // pg-boss refuses an empty group, but a host may be empty.
  return { data: { id }, priority: -seq, group: { id: `//${host}` }, startAfter };
}

function executor(sql: Sql) {
  return {
    executeSql: async (text: string, values?: unknown[]) => ({
      rows: await sql.query(text, values),
    }),
  };
}
