import { randomUUID } from "node:crypto";
import type { BaseLogger } from "pino";
import type { ConstructorOptions } from "pg-boss";
import type { State } from "../../model/task.ts";
import { createKeyedMutex } from "../../async/keyed-mutex.ts";
import { createClock } from "../clock.ts";
import { createDamageReport } from "../damage-report.ts";
import { copyTask, parseTask, toPage, updateDocument } from "../documents.ts";
import { createBatchInserter } from "./batch-inserter.ts";
import { claimNextAndCommit } from "./claim.ts";
import { connectionConfig } from "./connection.ts";
import type { Sql } from "./database.ts";
import { isConnectionLost, toStoreError } from "./database-errors.ts";
import { createKeyRows } from "./key-rows.ts";
import { createOutboxRows } from "./outbox-rows.ts";
import { probe } from "./probe.ts";
import { isPruningDue, prune } from "./pruning.ts";
import { openPostgresResources } from "./resources.ts";
import { readOldestFiles, readStoredBytes } from "./stored-files.ts";
import { countTasks } from "./task-counts.ts";
import {
  holds,
  lockRow,
  readDocument,
  readPage,
  removeRowAndCommit,
  saveRowAndCommit,
  type TaskRow,
} from "./task-rows.ts";
import { defaultMaxQueued, delayOf, storeClosedError } from "../rules.ts";
import type { StoreOptions, TaskStore } from "../store.ts";

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
  const damage = createDamageReport(logger);
  const onWarning = createWarningLog(logger);
  const connection = connectionConfig(url);
  const resources = await openPostgresResources({
    connection,
    heartbeatS,
    clock,
    onWarning,
    logger,
  });
  const { database, jobs, feed } = resources;
  const mutex = createKeyedMutex();
  const insert = createBatchInserter({ database, jobs, maxQueued, now: steadyNow, onCommit });
  const outbox = createOutboxRows({
    database,
    nowMs: options.now === undefined ? () => null : steadyMs,
    run: read,
    webhook,
  });
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

  /** `newest` is the number of the last event that was committed, `count` the number of events. */
  function onCommit(newest: number, count: number): void {
    if (!isPruningDue(newest, count)) return;
    mutex.runExclusive("pruning", () => prune(database, newest, steadyNow())).catch(onWarning);
  }

  /** Ends the lease of a task that changes its state, and removes its job; a queued task gets a new one. */
  async function replaceJob(sql: Sql, row: TaskRow, state: State, runAfter: Date | undefined) {
    if (row.job !== null) await jobs.remove(sql, row.job);
    if (state !== "queued") return { job: null, lease: null };
    const job = randomUUID();
    const delayMs = runAfter && delayOf(runAfter, now());
    await jobs.add(sql, [{ ...row, job, delayMs }]);
    return { job, lease: null };
  }

  return {
    events: feed.events,

    keys: createKeyRows(database, steadyNow, read),

    outbox,

    async create(task, idempotency) {
      const accepted = copyTask(task);
      const { id } = accepted;
      const key = idempotency && { ...idempotency };
      return parseTask({ id, document: await write(id, () => insert(accepted, key)) });
    },

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

    async update(id, change, updateOptions = {}) {
      const changes = structuredClone(change);
      const given = structuredClone(updateOptions);
      return write(id, async () => {
        const [task, number] = await database.transaction(async (sql) => {
          const row = await lockRow(sql, id);
          const {
            task: changed,
            stored,
            event,
            message,
          } = updateDocument(row, changes, given, now());
          if (message !== undefined) await outbox.add(sql, message);
          const held =
            changes.state === undefined
              ? row
              : await replaceJob(sql, row, changes.state, given.runAfter);
          const saved = { ...held, ...stored };
          const { maxStoredBytes } = given;
          return [changed, await saveRowAndCommit(sql, row, saved, event, maxStoredBytes)] as const;
        });
        onCommit(number, 1);
        return task;
      });
    },

    delete: (id) =>
      write(id, async () => {
        const [removed, number] = await database.transaction(async (sql) => {
          const row = await lockRow(sql, id);
          if (row.job !== null) await jobs.remove(sql, row.job);
          return [row, await removeRowAndCommit(sql, row)] as const;
        });
        onCommit(number, 1);
        return damage.parse(removed);
      }),

    async claim({ exceptHosts = [] }) {
      const hosts = [...exceptHosts];
      return write("claims", async () => {
        const claimed = await claimNextAndCommit({ database, jobs, now, damage }, hosts);
        if (claimed === undefined) return undefined;
        const { number, ...claim } = claimed;
        onCommit(number, 1);
        return claim;
      });
    },

    heartbeat: (id, lease) =>
      write(id, async () => (await holds(database, id, lease)) && jobs.touch(database, lease)),

    storedFiles: (query) =>
      read(async () => ({
        bytes: await readStoredBytes(database),
        oldest: await readOldestFiles(database, query),
      })),

    count: () => read(() => countTasks(database, damage)),

    /** Calls at the same time share one probe. */
    ping: () =>
      (pinging ??= read(() => probe(database, jobs)).finally(() => {
        pinging = undefined;
      })),

    close() {
      closing ??= mutex.onIdle().then(resources.close);
      return closing;
    },
  };
}

const warningIntervalMs = 60_000;

/**
 * Logs problems of background work, which is repeated every few seconds, at most once a minute. Leaves out
 * lost connections: the event feed logs when they begin and end.
 */
function createWarningLog(logger: PostgresStoreOptions["logger"]) {
  let quietUntilMs = 0;
  return (event: { message: string }) => {
    if (event instanceof Error && isConnectionLost(event)) return;
    if (performance.now() < quietUntilMs) return;
    quietUntilMs = performance.now() + warningIntervalMs;
    logger?.warn({ reason: event.message }, "database or job queue warning");
  };
}
