import { randomUUID } from "node:crypto";
import type { BaseLogger } from "pino";
import type { ConstructorOptions } from "pg-boss";
import type { Task } from "../task.ts";
import { changeTask } from "../task-changes.ts";
import { createKeyedMutex } from "../keyed-mutex.ts";
import { copyJson } from "./copy.ts";
import { parseTask, toPage } from "./documents.ts";
import { claimNext } from "./postgres/claim.ts";
import { connectionConfig } from "./postgres/connection.ts";
import { createBatchInserter } from "./postgres/batch-inserter.ts";
import type { Sql } from "./postgres/database.ts";
import { isConnectionLost, toStoreError } from "./postgres/database-errors.ts";
import { prune, isPruningDue } from "./postgres/pruning.ts";
import { probe } from "./postgres/migrations.ts";
import { openPostgresResources } from "./postgres/resources.ts";
import {
  holds,
  lockRow,
  readDocument,
  readPage,
  removeRow,
  saveRow,
  type TaskRow,
} from "./postgres/task-rows.ts";
import { storeClosedError, stalledCountAfter, defaultMaxQueued, leaseLostError } from "./rules.ts";
import type { OpenedStore, TaskStore } from "./store.ts";

export interface PostgresStoreOptions {
  /** `postgres://user:password@host:5432/database`, with the parameters that libpq knows. */
  url: string;
  /** Tasks that are queued at most; default 100,000. */
  maxQueued?: number;
  /** Seconds without a heartbeat after which a worker counts as dead, at least 10; default 10. */
  heartbeatS?: number;
  /** Default: the system's clock. */
  now?: () => Date;
  /** Of the jobs, as `now` is of the tasks; default: the database's clock. */
  clock?: ConstructorOptions["clock"];
  logger?: Pick<BaseLogger, "info" | "warn" | "error">;
}

/**
 * Opens the store in the database that `url` names, its tables brought up to date; any number of
 * processes share it. A lease lasts as long as `heartbeatS` was when its task was queued, whatever a
 * claim asks for. pg-boss delivers the tasks: each that is queued or claimed has one job, written in
 * the same transaction.
 *
 * @throws Error that names STORE_URL where it is no address of a database; ServiceError `unavailable`
 * where the database cannot be used. No message holds the password.
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<OpenedStore> {
  const { url, maxQueued = defaultMaxQueued, heartbeatS = 10, now = () => new Date() } = options;
  const { clock, logger } = options;
  const onWarning = createWarningLog(logger);
  const connection = connectionConfig(url);
  const parts = await openPostgresResources({ connection, heartbeatS, clock, onWarning, logger });
  const { database, jobs, feed } = parts;
  const mutex = createKeyedMutex();
  const create = createBatchInserter({ database, jobs, maxQueued, now, written });
  let closing: Promise<void> | undefined;

  /** Runs behind what was asked for before under the same name. */
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

  function written(number: number, count: number): void {
    if (!isPruningDue(number, count)) return;
    mutex.runExclusive("clearance", () => prune(database, number, now())).catch(onWarning);
  }

  /** Of a task that has moved: its job, a new one or none, and no lease. */
  async function replaceJob(sql: Sql, row: TaskRow, { state }: Task, runAfter: Date | undefined) {
    if (row.job !== null) await jobs.remove(sql, row.job);
    if (state !== "queued") return { job: null, lease: null };
    const job = randomUUID();
    await jobs.add(sql, [{ ...row, job, runAfter }]);
    return { job, lease: null };
  }

  const store: TaskStore = {
    name: "postgres",

    async create(task, idempotency) {
      const accepted = copyJson(task);
      const key = idempotency && { ...idempotency };
      return parseTask(await write(accepted.id, () => create(accepted, key)));
    },

    get: (id) =>
      read(async () => {
        const document = await readDocument(database, id);
        return document === undefined ? undefined : parseTask(document);
      }),

    list: ({ limit, ...query }) =>
      read(async () => toPage(await readPage(database, { ...query, limit: limit + 1 }), limit)),

    async update(id, change, { lease, runAfter, madeProgress } = {}) {
      const changes = copyJson(change);
      const dueAt = runAfter && new Date(runAfter);
      return write(id, async () => {
        const [task, number] = await database.transaction(async (sql) => {
          const row = await lockRow(sql, id);
          if (lease !== undefined && lease !== row.lease) throw leaseLostError(id);
          const changed = changeTask(parseTask(row.document), changes, now());
          const isMoved = changes.state !== undefined;
          const held = isMoved ? await replaceJob(sql, row, changed, dueAt) : row;
          const deaths = stalledCountAfter(row.deaths, changes, madeProgress);
          const document = JSON.stringify(changed);
          const after = { ...row, ...held, deaths, state: changed.state, document };
          return [changed, await saveRow(sql, row, after)] as const;
        });
        written(number, 1);
        return task;
      });
    },

    delete: (id) =>
      write(id, async () => {
        const [document, number] = await database.transaction(async (sql) => {
          const row = await lockRow(sql, id);
          if (row.job !== null) await jobs.remove(sql, row.job);
          return [row.document, await removeRow(sql, row)] as const;
        });
        written(number, 1);
        return parseTask(document);
      }),

    async claim({ exceptHosts = [] }) {
      const passedOver = [...exceptHosts];
      return write("claims", async () => {
        const claimed = await claimNext({ database, jobs, now }, passedOver);
        if (claimed === undefined) return undefined;
        const { number, ...claim } = claimed;
        written(number, 1);
        return claim;
      });
    },

    heartbeat: (id, lease) =>
      write(id, async () => (await holds(database, id, lease)) && jobs.touch(database, lease)),

    ping: () => read(() => probe(database)),

    close() {
      closing ??= mutex.onIdle().then(parts.close);
      return closing;
    },
  };
  return { store, events: feed.events };
}

const warningIntervalMs = 60_000;

/**
 * For what goes wrong behind the scenes: a line a minute at most, for it is tried again each few seconds.
 * None for a lost connection, of which the feed tells when it begins and when it is over.
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
