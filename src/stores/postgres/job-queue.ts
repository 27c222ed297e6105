import { PgBoss, type ConstructorOptions, type JobInsert } from "pg-boss";
import type { Connection } from "./connection.ts";
import type { Sql } from "./database.ts";
import { jobsSchema } from "./migrations.ts";

/** A task that is to be delivered. */
export interface JobRequest {
  /** Number of its job, never used before. */
  job: string;
  id: string;
  seq: number;
  host: string;
  /** Default: at once. */
  runAfter?: Date | undefined;
}

/** A job that has been delivered. */
export interface FetchedJob {
  job: string;
  taskId: string;
  /** Names this delivery alone. */
  lease: string;
  /** Ends after so long without a sign of life, as was said when the job was added. */
  leaseMs: number;
}

/** The jobs of the tasks that are queued or claimed, one of each. */
export interface JobQueue {
  add(sql: Sql, deliveries: readonly JobRequest[]): Promise<void>;
  /** The one of the oldest task that may run now, delivered. */
  fetch(sql: Sql, exceptHosts: readonly string[]): Promise<FetchedJob | undefined>;
  /** Tells that the worker lives; `false` where the job has been taken from it. */
  touch(sql: Sql, lease: string): Promise<boolean>;
  remove(sql: Sql, job: string): Promise<void>;
  close(): Promise<void>;
}

export interface JobQueueOptions {
  connection: Connection;
  /** Seconds without a heartbeat after which a worker counts as dead, at least 10. */
  heartbeatS: number;
  /** Default: the system's and the database's. */
  clock?: ConstructorOptions["clock"] | undefined;
  /** Told of what goes wrong behind the scenes. */
  onWarning: (event: { message: string }) => void;
}

const queue = "downloads";

/** For the watch alone: what is asked of the jobs is asked on the caller's. */
const connections = 2;

/** How often dead workers are looked for. */
const watchIntervalS = 3;

/** Nothing but a worker's silence takes a job from it, nothing but a move of its task ends it. */
const endless = { expireInSeconds: 10 * 366 * 86_400, retentionSeconds: 10 * 366 * 86_400 };
const maxInteger = 2 ** 31 - 1;

/** Opens pg-boss, its tables brought up to date. */
export async function openJobQueue({
  connection,
  heartbeatS,
  clock,
  onWarning,
}: JobQueueOptions): Promise<JobQueue> {
  const boss = new PgBoss({
    ...connection,
    max: connections,
    ...(clock && { clock }),
    schema: jobsSchema,
    createSchema: false,
    schedule: false,
    superviseIntervalSeconds: watchIntervalS,
    monitorIntervalSeconds: watchIntervalS,
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
    async add(sql, deliveries) {
      const jobs = deliveries.map((delivery) => ({
        ...toJob(delivery),
        ...endless,
        heartbeatSeconds: heartbeatS,
        retryLimit: maxInteger,
        retryDelay: 0,
      }));
      if (jobs.length > 0) await boss.insert(queue, jobs, { db: executor(sql) });
    },
    async fetch(sql, exceptHosts) {
      const ignoreGroups = exceptHosts.map(groupOf);
      const [job] = await boss.fetch<{ id: string }>(queue, { ignoreGroups, db: executor(sql) });
      if (job === undefined) return undefined;
      const leaseMs = 1_000 * (job.heartbeatSeconds ?? heartbeatS);
      return { job: job.id, taskId: job.data.id, lease: `${job.id}/${job.retryCount}`, leaseMs };
    },
    async touch(sql, lease) {
      const [id = "", retryCount] = lease.split("/");
      const attempt = { id, retryCount: Number(retryCount) };
      const answer: { affected?: number } = await boss.touch(queue, attempt, { db: executor(sql) });
      return answer.affected === 1;
    },
    async remove(sql, job) {
      await boss.deleteJob(queue, job, { db: executor(sql) });
    },
    close: () => boss.stop({ graceful: false }),
  };
}

/** The oldest task has the highest priority, also when it is queued again. */
function toJob({ job, id, seq, host, runAfter }: JobRequest): JobInsert {
  const startAfter = runAfter && { startAfter: runAfter };
  return { id: job, data: { id }, priority: -seq, group: { id: groupOf(host) }, ...startAfter };
}

/** Never empty, as a host may be. */
function groupOf(host: string): string {
  return `//${host}`;
}

function executor(sql: Sql) {
  return {
    executeSql: async (text: string, values?: unknown[]) => ({
      rows: await sql.query(text, values),
    }),
  };
}
