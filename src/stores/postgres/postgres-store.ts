import { randomUUID } from "node:crypto";
import type { BaseLogger } from "pino";
import type { ConstructorOptions } from "pg-boss";
import { createKeyedMutex } from "../../async/keyed-mutex.ts";
import { hasFailedForGood } from "../../feed/collection-changes.ts";
import type { TaskChange } from "../../feed/task-changes.ts";
import type { Task } from "../../model/task.ts";
import { createClock } from "../clock.ts";
import { copyTask, createDamageReport, parseTask, toPage } from "../documents.ts";
import { updateDocument } from "../task-writes.ts";
import { assertQuota, KeyAllowance, useChange } from "../quotas.ts";
import { assertStoredBytes, defaultMaxQueued, delayOf, storeClosedError } from "../rules.ts";
import type { Reused } from "../store-types.ts";
import type { StoreOptions, TaskReads, TaskStore, TaskWrites, UpdateOptions } from "../store.ts";
import { claimNextAndCommit } from "./claim.ts";
import { type CreateTask, createTaskCreator } from "./create-tasks.ts";
import type { Database, Sql, Transaction } from "./database.ts";
import { toStoreError } from "./database-errors.ts";
import { isPruningDue, prune } from "./feed/event-rows.ts";
import { sendText, writePause } from "./feed/feed.ts";
import type { JobQueue } from "./job-queue.ts";
import { createKeyRows } from "./key-rows.ts";
import { cancelAndCommit, endInTransaction, isCollection, mustLockMembers, removeAndCommit } from "./members/end.ts";
import { growAndCommit, retryAndCommit } from "./members/grow.ts";
import {
  type EventNumbers,
  followAll,
  lockFollowers,
  type MemberDeps,
  type MemberRow,
  readOwnMembers,
  writeChanges,
} from "./members/member-rows.ts";
import { createOutboxRows } from "./outbox-rows.ts";
import { openPostgresResources } from "./resources.ts";
import { probe } from "./task-inserts.ts";
import { countTasks, holds, readDocument, readOldestFiles, readPage, readStoredBytes } from "./task-reads.ts";
import { lockRow, type TaskRow } from "./task-rows.ts";

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
  const { webhook = false, maxKeptBytes } = options;
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
  const allowance = new KeyAllowance(maxKeptBytes);
  const creating = { database, jobs, maxQueued, allowance, now: steadyNow, onCommit };
  const create = createTaskCreator(creating, { isReusing: false });
  const reuse = createTaskCreator(creating, { isReusing: true });
  const damage = createDamageReport(logger);
  const deps = { database, jobs, now, maxQueued, damage, outbox, create, reuse, read, write, onCommit };
  return {
    events: feed.events,
    pauses: { ...feed.pauses, share: (pause) => read(() => writePause(database, pause)) },
    broadcast: { ...feed.broadcast, send: (text) => read(() => sendText(database, text)) },
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
interface PostgresStoreDeps extends MemberDeps {
  database: Database;
  maxQueued: number;
  create: CreateTask;
  reuse: CreateTask;
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

    ownMembers: (id) => read(() => readOwnMembers(database, id)),

    storedFiles: (query) =>
      read(async () => ({
        bytes: await readStoredBytes(database),
        oldest: await readOldestFiles(database, query),
      })),

    count: () => read(() => countTasks(database, damage)),
  };
}

function createTaskWrites(deps: PostgresStoreDeps): TaskWrites {
  const { database, jobs, damage, create, reuse, write, onCommit } = deps;

  /** Runs a transaction on a task, and reports its events. */
  async function commit<T extends EventNumbers>(
    id: string,
    work: (sql: Transaction, members: MemberRow[] | undefined) => Promise<T>,
  ): Promise<Omit<T, keyof EventNumbers>> {
    return write(id, async () => {
      const { number, count, ...result } = await endInTransaction(database, id, work);
      onCommit(number, count);
      return result;
    });
  }

  async function createOnce(store: CreateTask, ...[task, idempotency]: Parameters<CreateTask>): Promise<Reused> {
    const accepted = copyTask(task);
    const key = idempotency && { ...idempotency };
    return write(accepted.id, () => store(accepted, key));
  }

  return {
    create: async (task, idempotency) => (await createOnce(create, task, idempotency)).task,

    reuse: (task, idempotency) => createOnce(reuse, task, idempotency),

    async grow(id, given) {
      const growing = structuredClone(given);
      return commit(id, (sql) => growAndCommit(deps, sql, id, growing));
    },

    retryMembers: (id, lease) => commit(id, (sql) => retryAndCommit(deps, sql, id, lease)),

    async update(id, change, options = {}) {
      const given = structuredClone({ id, change, options });
      return (await commit(id, (sql, members) => updateAndCommit(deps, sql, members, given))).task;
    },

    async delete(id) {
      const { row } = await commit(id, (sql, members) => removeAndCommit(deps, sql, id, members));
      return damage.parse(row);
    },

    async claim({ exceptHosts = [], exceptOwners = [] }) {
      const except = { exceptHosts: [...exceptHosts], exceptOwners: [...exceptOwners] };
      return write("claims", async () => {
        const claimed = await claimNextAndCommit(deps, except);
        if (claimed === undefined) return undefined;
        const { number, count, ...claim } = claimed;
        onCommit(number, count);
        return claim;
      });
    },

    heartbeat: (id, lease) => write(id, async () => (await holds(database, id, lease)) && jobs.touch(database, lease)),
  };
}

async function updateAndCommit(
  deps: PostgresStoreDeps,
  sql: Transaction,
  members: MemberRow[] | undefined,
  { id, change, options }: { id: string; change: TaskChange; options: UpdateOptions },
) {
  const { jobs, now, maxQueued } = deps;
  const row = await lockRow(sql, id);
  const isCanceled = change.state === "canceled" && isCollection(row);
  if (isCanceled && members === undefined) throw mustLockMembers;
  const written = updateDocument(row, change, options, now());
  const { task, stored } = written;
  const delayMs = options.runAfter && delayOf(options.runAfter, now());
  const followers = await lockFollowers(sql, [row], stored.state, hasFailedForGood(task));
  const held = change.state === undefined ? row : await replaceJob(jobs, sql, row, task, delayMs);
  const own = { row, written, held };
  if (isCanceled) return cancelAndCommit(deps, sql, own, members ?? []);
  const changes = [own, ...followAll(followers, deps)];
  const { limits } = row;
  const { maxStoredBytes } = options;
  const isChecked = limits !== null || maxStoredBytes !== undefined;
  const { number, use, waiting } = await writeChanges(isChecked ? sql.query : sql.queryAndCommit, sql, changes, deps);
  const free = maxQueued - waiting + useChange(row, stored).queued;
  if (limits !== null) assertQuota({ limits, use }, free, row, stored);
  // In a statement of its own, which sees what was committed before the counters were locked.
  if (maxStoredBytes !== undefined) assertStoredBytes(await readStoredBytes(sql), maxStoredBytes);
  return { task, number, count: changes.length };
}

/** Ends the lease of a task that has changed its state, and removes its job; a queued task gets a new one. */
async function replaceJob(jobs: JobQueue, sql: Sql, row: TaskRow, { state }: Task, delayMs: number | undefined) {
  if (row.job !== null) await jobs.remove(sql, row.job);
  if (state !== "queued") return { job: null, lease: null };
  const job = randomUUID();
  await jobs.add(sql, [{ ...row, job, delayMs }]);
  return { job, lease: null };
}
