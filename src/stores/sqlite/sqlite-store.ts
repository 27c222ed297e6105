import { randomUUID } from "node:crypto";
import { realpathSync } from "node:fs";
import {
  changeEvent,
  createTaskEvents,
  deletedEvent,
  type TaskEvent,
} from "../../feed/task-events.ts";
import { hostOf, type State } from "../../model/task.ts";
import type { BaseLogger } from "pino";
import { createClock } from "../clock.ts";
import { createDamageReport } from "../damage-report.ts";
import {
  claimDocument,
  copyTask,
  fileColumns,
  type ListedTask,
  parseTask,
  toPage,
  updateDocument,
} from "../documents.ts";
import {
  assertQueueNotFull,
  assertStoredBytes,
  defaultMaxQueued,
  delayOf,
  ofOwner,
  storeClosedError,
} from "../rules.ts";
import { endImpossibleDelays, openDatabase, suspectRows } from "./database.ts";
import { createFileCheck } from "./file-check.ts";
import { createGroupCommit, toStoreError } from "./group-commit.ts";
import { createIdempotencyTable } from "./idempotency-table.ts";
import { createKeyTable } from "./key-table.ts";
import { createOutboxTable } from "./outbox-table.ts";
import { createSpaceProbe } from "./space-probe.ts";
import { prepareStatements } from "./statements.ts";
import { type ClaimState, createTaskTable } from "./task-table.ts";
import { createWalSync } from "./wal-sync.ts";
import { maxDelayMs, type StoreOptions, type TaskStore } from "../store.ts";

export interface SqliteStoreOptions extends StoreOptions {
  /** The file; created with its folder if missing. */
  path: string;
  /** Default: no log. */
  logger?: Pick<BaseLogger, "info" | "error">;
}

/** What a write returns, and the change that it made. */
interface Written<T> {
  result: T;
  event?: TaskEvent;
}

/**
 * Opens a durable store in one file, for one process at a time. Writes that arrive together share one
 * transaction and one sync of the disk. Reads see writes that are not on the disk yet, and do not wait.
 *
 * If the file is removed, moved or replaced, writes reject with `unavailable`, and reads still find what the
 * open file has. The newest 10,000 records are checked for damage when it is opened.
 *
 * @throws ServiceError `unavailable` if the file cannot be used; the message says why.
 */
export function openSqliteStore(options: SqliteStoreOptions): TaskStore {
  const { path, maxQueued = defaultMaxQueued, webhook = false, logger } = options;
  const { events = createTaskEvents() } = options;
  const { now, steadyMs } = createClock(options);
  const db = openDatabase(path);
  endImpossibleDelays(db, steadyMs() + maxDelayMs);
  const damage = createDamageReport(logger);
  const suspects = db.prepare(suspectRows).all() as unknown as ListedTask[];
  for (const row of suspects) damage.parse(row);
  const statements = prepareStatements(db);
  const tasks = createTaskTable(statements);
  const uses = createIdempotencyTable(statements);
  const realPath = realpathSync(path); // SQLite has the log beside it.
  const wal = createWalSync(db, realPath);
  const check = createFileCheck(db, path, logger);
  const outbox = createOutboxTable({ sql: statements, steadyMs, read, write, webhook });
  const space = createSpaceProbe(realPath);
  const { mark, complete } = tasks;
  const commits = createGroupCommit(db, wal.flush, { mark, complete, check });
  let pinging: Promise<void> | undefined;
  let closed: Promise<void> | undefined;

  async function finish(): Promise<void> {
    await commits.finish();
    await space.close();
    await wal.close();
    db.close();
  }

  /** Publishes in the order of the commits, in which their promises resolve. */
  async function write<T>(job: () => Written<T>): Promise<T> {
    if (closed !== undefined) throw storeClosedError("sqlite");
    const { result, event } = await commits.run(job);
    if (event !== undefined) events.publish(event);
    return result;
  }

  async function read<T>(job: () => T): Promise<T> {
    if (closed !== undefined) throw storeClosedError("sqlite");
    try {
      return job();
    } catch (error) {
      throw toStoreError(error);
    }
  }

  function claimStateAfter(state: State, runAfter: Date | undefined): ClaimState {
    if (state !== "queued") return { claimable: 0, dueAtMs: null, lease: null };
    const dueAtMs = runAfter === undefined ? null : steadyMs() + delayOf(runAfter, now());
    return { claimable: dueAtMs === null ? 1 : 0, dueAtMs, lease: null };
  }

  /** Returns the claimed row, its task changed; takes rows that are damaged out of the queue. */
  function claimNext(nowMs: number, hosts: readonly string[]) {
    for (;;) {
      const row = tasks.nextInTurn(nowMs, hosts);
      if (row === undefined) return undefined;
      const changed = damage.unlessDamaged(row, () => claimDocument(row, now()));
      if (changed !== undefined) return { row, ...changed };
      tasks.save(row, { ...row, claimable: 0, dueAtMs: null });
    }
  }

  /** The space first: on a full disk the write of each probe would use up what is freed. */
  async function ping(): Promise<void> {
    if (closed !== undefined) throw storeClosedError("sqlite");
    check();
    await space.check();
    await write(() => {
      statements.probe.run();
      return { result: undefined };
    });
  }

  return {
    events,

    keys: createKeyTable({
      sql: statements,
      read,
      write,
      steadyMs,
      onChange: tasks.forgetQuotas,
    }),

    outbox,

    create(given, idempotency) {
      const task = copyTask(given);
      const { id, state, url, owner = null } = task;
      const document = JSON.stringify(task);
      const file = fileColumns(task);
      const key = ofOwner(task, idempotency);
      return write(() => {
        const nowMs = steadyMs();
        const earlier = key && uses.recall(key, nowMs);
        if (earlier !== undefined) return { result: parseTask({ id, document: earlier }) };
        assertQueueNotFull(tasks.queued(), maxQueued);
        tasks.insert({ id, state, owner, host: hostOf(url), document, ...file });
        if (key !== undefined) uses.keep(key, document, nowMs);
        return { result: task, event: changeEvent(task, document) };
      });
    },

    get: (id) =>
      read(() => {
        const document = tasks.document(id);
        return document === undefined ? undefined : parseTask({ id, document });
      }),

    list: ({ limit, ...query }) =>
      read(() => toPage(tasks.page({ ...query, limit: limit + 1 }), limit, damage.parse)),

    async update(id, change, updateOptions = {}) {
      const changes = structuredClone(change);
      const given = structuredClone(updateOptions);
      return write(() => {
        const row = tasks.require(id);
        const { task, stored, event, message } = updateDocument(row, changes, given, now());
        if (message !== undefined) outbox.add(message);
        const isMoved = changes.state !== undefined;
        tasks.save(row, {
          ...row,
          ...(isMoved && claimStateAfter(task.state, given.runAfter)),
          ...stored,
        });
        const { maxStoredBytes: most } = given;
        if (most !== undefined) assertStoredBytes(tasks.storedBytes(), most);
        return { result: task, event };
      });
    },

    delete: (id) =>
      write(() => {
        const row = tasks.require(id);
        tasks.remove(row);
        const result = damage.parse(row);
        return { result, event: deletedEvent(id, row.owner) };
      }),

    async claim({ leaseMs, exceptHosts = [] }) {
      const hosts = [...exceptHosts];
      return write(() => {
        const nowMs = steadyMs();
        const claimed = claimNext(nowMs, hosts);
        if (claimed === undefined) return { result: undefined };
        const { row, task, stored, event } = claimed;
        const { stalledCount } = stored;
        const lease = randomUUID();
        tasks.save(row, { ...stored, claimable: 0, dueAtMs: nowMs + leaseMs, lease });
        tasks.markClaim(row);
        return { result: { task, lease, stalledCount, bytesLeft: tasks.bytesLeft(row) }, event };
      });
    },

    heartbeat: (id, lease, leaseMs) =>
      write(() => {
        const row = tasks.find(id);
        if (row?.lease !== lease) return { result: false };
        tasks.extendLease(row, steadyMs() + leaseMs);
        return { result: true };
      }),

    storedFiles: (query) =>
      read(() => ({ bytes: tasks.storedBytes(), oldest: tasks.oldestFiles(query) })),

    count: () =>
      read(() => {
        const byState = tasks.counts();
        for (const row of tasks.queuedTasks()) {
          const task = damage.parse(row);
          if (task !== undefined) return { byState, oldestQueuedAt: task.created_at };
        }
        return { byState, oldestQueuedAt: null };
      }),

    /** Calls at the same time share one probe. */
    ping: () =>
      (pinging ??= ping().finally(() => {
        pinging = undefined;
      })),

    close: () => (closed ??= finish()),
  };
}
