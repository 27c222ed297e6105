import { randomUUID } from "node:crypto";
import { changeEvent, createTaskEvents, deletedEvent, type TaskEvent } from "../task-events.ts";
import { hostOf, type State } from "../task.ts";
import { claimDocument, parseTask, toPage, updateDocument } from "./documents.ts";
import { assertQueueNotFull, defaultMaxQueued, storeClosedError } from "./rules.ts";
import { openDatabase } from "./sqlite/database.ts";
import { createGroupCommit, toStoreError } from "./sqlite/group-commit.ts";
import { createIdempotencyTable } from "./sqlite/idempotency-table.ts";
import { prepareStatements } from "./sqlite/statements.ts";
import { type ClaimState, createTaskTable } from "./sqlite/task-table.ts";
import { createWalSync } from "./sqlite/wal-sync.ts";
import type { StoreOptions, TaskStore } from "./store.ts";

export interface SqliteStoreOptions extends StoreOptions {
  /** The file; created with its folder if missing. */
  path: string;
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
 * @throws ServiceError `unavailable` if the file cannot be used; the message says why.
 */
export function openSqliteStore(options: SqliteStoreOptions): TaskStore {
  const { path, maxQueued = defaultMaxQueued, now = () => new Date() } = options;
  const { events = createTaskEvents() } = options;
  const db = openDatabase(path);
  const statements = prepareStatements(db);
  const tasks = createTaskTable(statements);
  const keys = createIdempotencyTable(statements);
  const wal = createWalSync(db, path);
  const commits = createGroupCommit(db, wal.flush, tasks.mark);
  let closed: Promise<void> | undefined;

  async function finish(): Promise<void> {
    await commits.finish();
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

  return {
    events,

    async create({ ...task }, idempotency) {
      const document = JSON.stringify(task);
      const key = idempotency && { ...idempotency };
      const response = await write(() => {
        const nowMs = now().getTime();
        const earlier = key && keys.recall(key, nowMs);
        if (earlier !== undefined) return { result: earlier };
        assertQueueNotFull(tasks.queued(), maxQueued);
        const { id, state, url } = task;
        tasks.insert(id, { state, host: hostOf(url), document });
        if (key !== undefined) keys.keep(key, document, nowMs);
        return { result: document, event: changeEvent(task, document) };
      });
      return parseTask(response);
    },

    get: (id) =>
      read(() => {
        const document = tasks.document(id);
        return document === undefined ? undefined : parseTask(document);
      }),

    list: ({ limit, state, before }) =>
      read(() => toPage(tasks.page(limit + 1, state, before), limit)),

    async update(id, change, updateOptions = {}) {
      const changes = structuredClone(change);
      const given = structuredClone(updateOptions);
      return write(() => {
        const row = tasks.require(id);
        const { task, stored } = updateDocument(row, changes, given, now());
        const isMoved = changes.state !== undefined;
        tasks.save(row, {
          ...row,
          ...(isMoved && claimStateAfter(task.state, given.runAfter)),
          ...stored,
        });
        return { result: task, event: changeEvent(task, stored.document) };
      });
    },

    delete: (id) =>
      write(() => {
        const row = tasks.require(id);
        tasks.remove(row);
        return { result: parseTask(row.document), event: deletedEvent(id) };
      }),

    async claim({ leaseMs, exceptHosts = [] }) {
      const hosts = [...exceptHosts];
      return write(() => {
        const at = now();
        const row = tasks.oldestClaimable(at.getTime(), hosts);
        if (row === undefined) return { result: undefined };
        const { task, stored } = claimDocument(row, at);
        const lease = randomUUID();
        const dueAtMs = at.getTime() + leaseMs;
        tasks.save(row, { ...stored, claimable: 0, dueAtMs, lease });
        const { document, stalledCount } = stored;
        return { result: { task, lease, stalledCount }, event: changeEvent(task, document) };
      });
    },

    heartbeat: (id, lease, leaseMs) =>
      write(() => {
        const row = tasks.find(id);
        if (row?.lease !== lease) return { result: false };
        tasks.extendLease(row, now().getTime() + leaseMs);
        return { result: true };
      }),

    ping: () =>
      write(() => {
        statements.probe.run();
        return { result: undefined };
      }),

    close: () => (closed ??= finish()),
  };
}

function claimStateAfter(state: State, runAfter: Date | undefined): ClaimState {
  if (state !== "queued") return { claimable: 0, dueAtMs: null, lease: null };
  const dueAtMs = runAfter?.getTime() ?? null;
  return { claimable: dueAtMs === null ? 1 : 0, dueAtMs, lease: null };
}
