import { randomUUID } from "node:crypto";
import type { BaseLogger } from "pino";
import type { ConstructorOptions } from "pg-boss";
import { createKeyedMutex } from "../../async/keyed-mutex.ts";
import type { TaskChange } from "../../feed/task-changes.ts";
import { deletedEvent } from "../../feed/task-events.ts";
import type { Task } from "../../model/task.ts";
import { createClock } from "../clock.ts";
import { copyTask, createDamageReport, type DamageReport, parseTask, toPage, updateDocument } from "../documents.ts";
import { assertQuota } from "../quotas.ts";
import { assertStoredBytes, defaultMaxQueued, delayOf, storeClosedError } from "../rules.ts";
import type { StoreOptions, TaskReads, TaskStore, TaskWrites, UpdateOptions } from "../store.ts";
import { createBatchInserter, type InsertTask } from "./batch-inserter.ts";
import { claimNextAndCommit } from "./claim.ts";
import type { Database, Sql, Transaction } from "./database.ts";
import { toStoreError } from "./database-errors.ts";
import { isPruningDue, prune } from "./feed.ts";
import type { JobQueue } from "./job-queue.ts";
import { createKeyRows } from "./key-rows.ts";
import { createOutboxRows, type OutboxRows } from "./outbox-rows.ts";
import { openPostgresResources } from "./resources.ts";
import { probe } from "./task-inserts.ts";
import { countTasks, holds, readDocument, readOldestFiles, readPage, readStoredBytes } from "./task-reads.ts";
import { lockRow, type TaskRow, writeRow } from "./task-rows.ts";

export interface PostgresStoreOptions extends Omit<StoreOptions, "events"> {
  /** `postgres://user:password@host:5432/database`, with the parameters that libpq knows. */
  url: string;
  /** Seconds without a heartbeat after which a worker counts as dead, at least 10; default 10. */
  heartbeatS?: number;
  /** Of the job queue, as `now` is of the tasks; default: the database's clock. */
  clock?: ConstructorOptions["clock"];
  logger?: Pick<BaseLogger, "info" | "warn" | "error">;
}

/**
 * Opens the store in the database that `url` names and migrates its tables; any number of processes
 * share it. pg-boss delivers the tasks: each queued or claimed task has one job, written in the same
 * transaction. A lease lasts as long as `heartbeatS` was when its task was queued, whatever a claim asks for.
 *
 * @throws Error that names STORE_URL if it does not name a database; ServiceError `unavailable` if the
 * database cannot be used. No message holds the password.
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<TaskStore> {
  const { url, maxQueued = defaultMaxQueued, heartbeatS = 10, clock, logger } = options;
  const { webhook = false } = options;
  const { now, steadyMs } = createClock(options);
  const steadyNow = () => new Date(steadyMs());
  const resources = await openPostgresResources({ url, heartbeatS, clock, logger });
  const { database, jobs, feed, onWarning, close } = resources;
  const mutex = createKeyedMutex();
  let pinging: Promise<void> | undefined;
  let closing: Promise<void> | undefined;

  /** Runs after earlier writes under the same name. */
  async function write<T>(name: string, job: () => Promise<T>): Promise<T> {
    return read(() => mutex.runExclusive(name, job));
  }

  async function read<T>(job: () => Promise<T>): Promise<T> {
    if (closing !== undefined) throw storeClosedError("postgres");
    try {
      return await job();
    } catch (error) {
      throw toStoreError(error);
    }
  }

  function onCommit(newest: number, count: number): void {
    if (!isPruningDue(newest, count)) return;
    mutex.runExclusive("pruning", () => prune(database, newest, steadyNow())).catch(onWarning);
  }

  const nowMs = options.now === undefined ? () => null : steadyMs;
  const outbox = createOutboxRows({ database, nowMs, run: read, webhook });
  const insert = createBatchInserter({ database, jobs, maxQueued, now: steadyNow, onCommit });
  const damage = createDamageReport(logger);
  const deps = { database, jobs, now, damage, outbox, insert, read, write, onCommit };
  return {
    events: feed.events,
    keys: createKeyRows(database, steadyNow, read),
    outbox,
    ...createTaskReads(deps),
    ...createTaskWrites(deps),
    /** Calls at the same time share one probe. */
    ping: () =>
      (pinging ??= read(() => probe(database, jobs)).finally(() => {
        pinging = undefined;
      })),
    close: () => (closing ??= mutex.onIdle().then(close)),
  };
}

/** What the methods of the store work with. */
interface PostgresStoreDeps {
  database: Database;
  jobs: JobQueue;
  now: () => Date;
  damage: DamageReport;
  outbox: OutboxRows;
  insert: InsertTask;
  read<T>(job: () => Promise<T>): Promise<T>;
  write<T>(name: string, job: () => Promise<T>): Promise<T>;
  /** Called with the number of the newest event that was committed, and the number of events. */
  onCommit(newest: number, count: number): void;
}

function createTaskReads({ database, damage, read }: PostgresStoreDeps): TaskReads {
  return {
    get: (id) =>
      read(async () => {
        const document = await readDocument(database, id);
        return document === undefined ? undefined : parseTask({ id, document });
      }),

    list: ({ limit, ...query }) =>
      read(async () => {
        const found = await readPage(database, { ...query, limit: limit + 1 });
        return toPage(found, limit, damage.parse);
      }),

    storedFiles: (query) =>
      read(async () => ({
        bytes: await readStoredBytes(database),
        oldest: await readOldestFiles(database, query),
      })),

    count: () => read(() => countTasks(database, damage)),
  };
}

function createTaskWrites(deps: PostgresStoreDeps): TaskWrites {
  const { database, jobs, damage, insert, write, onCommit } = deps;
  return {
    async create(task, idempotency) {
      const accepted = copyTask(task);
      const { id } = accepted;
      const key = idempotency && { ...idempotency };
      return parseTask({ id, document: await write(id, () => insert(accepted, key)) });
    },

    async update(id, change, options = {}) {
      const changes = structuredClone(change);
      const given = structuredClone(options);
      return write(id, async () => {
        const { task, number } = await database.transaction((sql) => updateAndCommit(deps, sql, id, changes, given));
        onCommit(number, 1);
        return task;
      });
    },

    delete: (id) =>
      write(id, async () => {
        const { row, number } = await database.transaction(async (sql) => {
          const found = await lockRow(sql, id);
          if (found.job !== null) await jobs.remove(sql, found.job);
          const event = deletedEvent(id, found.owner);
          const written = await writeRow(sql.queryAndCommit, found, undefined, event);
          return { row: found, number: written.number };
        });
        onCommit(number, 1);
        return damage.parse(row);
      }),

    async claim({ exceptHosts = [] }) {
      const hosts = [...exceptHosts];
      return write("claims", async () => {
        const claimed = await claimNextAndCommit(deps, hosts);
        if (claimed === undefined) return undefined;
        const { number, ...claim } = claimed;
        onCommit(number, 1);
        return claim;
      });
    },

    heartbeat: (id, lease) => write(id, async () => (await holds(database, id, lease)) && jobs.touch(database, lease)),
  };
}

async function updateAndCommit(
  { jobs, now, outbox }: PostgresStoreDeps,
  sql: Transaction,
  id: string,
  change: TaskChange,
  given: UpdateOptions,
) {
  const row = await lockRow(sql, id);
  const { task, stored, event, message } = updateDocument(row, change, given, now());
  if (message !== undefined) await outbox.add(sql, message);
  const delayMs = given.runAfter && delayOf(given.runAfter, now());
  const held = change.state === undefined ? row : await replaceJob(jobs, sql, row, task, delayMs);
  const update = { ...held, ...stored };
  const { maxStoredBytes } = given;
  const isLimited = row.limits !== null || maxStoredBytes !== undefined;
  const run = isLimited ? sql.query : sql.queryAndCommit;
  const { number, use } = await writeRow(run, row, update, event);
  if (row.limits !== null) assertQuota(row.limits, use, row, update);
  // In a statement of its own, which sees what was committed before the counters were locked.
  if (maxStoredBytes !== undefined) assertStoredBytes(await readStoredBytes(sql), maxStoredBytes);
  return { task, number };
}

/** Ends the lease of a task that has changed its state, and removes its job; a queued task gets a new one. */
async function replaceJob(jobs: JobQueue, sql: Sql, row: TaskRow, { state }: Task, delayMs: number | undefined) {
  if (row.job !== null) await jobs.remove(sql, row.job);
  if (state !== "queued") return { job: null, lease: null };
  const job = randomUUID();
  await jobs.add(sql, [{ ...row, job, delayMs }]);
  return { job, lease: null };
}
