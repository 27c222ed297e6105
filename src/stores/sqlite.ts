import { randomUUID } from "node:crypto";
import { hostOf, type Task } from "../task.ts";
import { changeTask } from "../task-changes.ts";
import { copyJson } from "./copy.ts";
import { parseTask, toPage } from "./documents.ts";
import {
  assertQueueNotFull,
  storeClosedError,
  stalledCountAfter,
  defaultMaxQueued,
  leaseLostError,
  toRunning,
} from "./rules.ts";
import { openDatabase } from "./sqlite/database.ts";
import { createGroupCommit, toStoreError } from "./sqlite/group-commit.ts";
import { createWalSync } from "./sqlite/wal-sync.ts";
import { createIdempotencyTable } from "./sqlite/idempotency-table.ts";
import { prepareStatements } from "./sqlite/statements.ts";
import { createTaskTable, type ClaimState } from "./sqlite/task-table.ts";
import type { TaskStore } from "./store.ts";

export interface SqliteStoreOptions {
  /** The file; it and its folder are made where they are missing. */
  path: string;
  /** Tasks that are queued at most; default 100,000. */
  maxQueued?: number;
  /** Default: the system's clock. */
  now?: () => Date;
}

/**
 * A durable store in one file, for one process at a time. Writes that arrive together share one
 * transaction and one wait for the disk, which nothing else waits for. What can be read may not be on
 * the disk yet.
 *
 * @throws ServiceError `unavailable` where the file cannot be used; the message says why.
 */
export function openSqliteStore(options: SqliteStoreOptions): TaskStore {
  const { path, maxQueued = defaultMaxQueued, now = () => new Date() } = options;
  const db = openDatabase(path);
  const statements = prepareStatements(db);
  const tasks = createTaskTable(statements);
  const keys = createIdempotencyTable(statements);
  const log = createWalSync(db, path);
  const commits = createGroupCommit(db, log.flush, tasks.mark);
  let closed: Promise<void> | undefined;

  async function finish(): Promise<void> {
    await commits.finish();
    await log.close();
    db.close();
  }

  async function write<T>(job: () => T): Promise<T> {
    if (closed !== undefined) throw storeClosedError("sqlite");
    return commits.run(job);
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
    name: "sqlite",

    async create(task, idempotency) {
      const accepted = copyJson(task);
      const document = JSON.stringify(accepted);
      const { id, state, url } = accepted;
      const key = idempotency && { ...idempotency };
      const answer = await write(() => {
        const nowMs = now().getTime();
        const earlier = key && keys.recall(key, nowMs);
        if (earlier !== undefined) return earlier;
        assertQueueNotFull(tasks.queued(), maxQueued);
        tasks.insert({ id, state, host: hostOf(url), document });
        if (key !== undefined) keys.keep(key, document, nowMs);
        return document;
      });
      return answer === document ? accepted : parseTask(answer);
    },

    get: (id) =>
      read(() => {
        const document = tasks.document(id);
        return document === undefined ? undefined : parseTask(document);
      }),

    list: ({ limit, state, before }) =>
      read(() => toPage(tasks.page(limit + 1, state, before), limit)),

    async update(id, change, { lease, runAfter, madeProgress } = {}) {
      const changes = copyJson(change);
      const dueAtMs = runAfter?.getTime() ?? null;
      return write(() => {
        const row = tasks.require(id);
        if (lease !== undefined && lease !== row.lease) throw leaseLostError(id);
        const task = changeTask(parseTask(row.document), changes, now());
        const place = changes.state === undefined ? row : placeAfterMove(task, dueAtMs);
        const stalledCount = stalledCountAfter(row.stalledCount, changes, madeProgress);
        tasks.save(row, {
          ...place,
          stalledCount,
          state: task.state,
          document: JSON.stringify(task),
        });
        return task;
      });
    },

    delete: (id) =>
      write(() => {
        const row = tasks.require(id);
        tasks.remove(row);
        return parseTask(row.document);
      }),

    async claim({ leaseMs, exceptHosts = [] }) {
      const passedOver = [...exceptHosts];
      return write(() => {
        const at = now();
        const row = tasks.oldestClaimable(at.getTime(), passedOver);
        if (row === undefined) return undefined;
        const task = toRunning(parseTask(row.document), at);
        const lease = randomUUID();
        const stalledCount = row.stalledCount + Number(row.state === "running");
        const place = { isClaimable: false, dueAtMs: at.getTime() + leaseMs, lease, stalledCount };
        tasks.save(row, { ...place, state: task.state, document: JSON.stringify(task) });
        return { task, lease, stalledCount };
      });
    },

    heartbeat: (id, lease, leaseMs) =>
      write(() => {
        const row = tasks.find(id);
        if (row?.lease !== lease) return false;
        tasks.extendLease(row, now().getTime() + leaseMs);
        return true;
      }),

    ping: () =>
      write(() => {
        statements.probe.run();
      }),

    close: () => (closed ??= finish()),
  };
}

/** Behind a move: claimable at once or later where it is queued, else not; nobody holds it. */
function placeAfterMove({ state }: Task, dueAtMs: number | null): ClaimState {
  const place = { lease: null, stalledCount: 0 };
  if (state !== "queued") return { ...place, isClaimable: false, dueAtMs: null };
  return { ...place, isClaimable: dueAtMs === null, dueAtMs };
}
