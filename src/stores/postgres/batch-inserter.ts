import type { Task } from "../../model/task.ts";
import { type Idempotency, idempotencyTtlMs } from "../store-types.ts";
import type { Database } from "./database.ts";
import { createAdmission, readExisting, resolveExisting } from "./existing-rows.ts";
import type { JobQueue } from "./job-queue.ts";
import { insertTasks, type TaskInsert, toInsert } from "./task-inserts.ts";
import { toStoreError } from "./database-errors.ts";

/** Stores a task. Resolves to its document, or to what was kept earlier under its key; see `readAnswer`. */
export type InsertTask = (task: Task, idempotency?: Idempotency) => Promise<string>;

export interface BatchInserterOptions {
  database: Database;
  jobs: JobQueue;
  maxQueued: number;
  now: () => Date;
  /** Called after a commit, with the number of the newest event and the number of events. */
  onCommit: (newest: number, count: number) => void;
}

/** Tasks that arrive during a transaction share the next one, in their order. */
export function createBatchInserter(options: BatchInserterOptions): InsertTask {
  return createBatches(createSettler(options));
}

/** Returns a function that settles what it can of a batch, and returns the rest, to be settled next. */
function createSettler(options: BatchInserterOptions) {
  /** Whether the next write would fail because of rows that exist. */
  let mustReadExisting = false;

  return async (batch: readonly Pending<string>[]): Promise<readonly Pending<string>[]> => {
    const { fresh, admitted } = mustReadExisting
      ? await settleExisting(batch, options)
      : { fresh: batch, admitted: batch };
    if (admitted.length === 0) return [];
    const inserts = admitted.map(({ insert }) => insert);
    mustReadExisting = !(await insertAndCommit(inserts, options));
    if (mustReadExisting) return fresh;
    for (const { insert, resolve } of admitted) resolve(insert.document);
    return fresh.filter((pending) => !admitted.includes(pending));
  };
}

/**
 * Settles those whose id or key exists, and those for which the queue or their owner's quota is full. Returns
 * the others, and those of them that may be queued if all the others are stored before.
 */
async function settleExisting(batch: readonly Pending<string>[], { database, maxQueued, now }: BatchInserterOptions) {
  const existing = await readExisting(database, batch, now());
  const fresh = batch.filter(({ insert, resolve, reject }) => {
    try {
      const document = resolveExisting(existing, insert, maxQueued);
      if (document !== undefined) resolve(document);
      return document === undefined;
    } catch (error) {
      reject(error);
      return false;
    }
  });
  const admit = createAdmission(existing, maxQueued);
  return { fresh, admitted: fresh.filter(({ insert }) => admit(insert.owner)) };
}

/** Returns false, with nothing stored, if an id or a key exists or the queue or a quota is full. */
async function insertAndCommit(
  inserts: readonly TaskInsert[],
  { database, jobs, maxQueued, now, onCommit }: BatchInserterOptions,
): Promise<boolean> {
  try {
    const number = await database.transaction(async (sql) => {
      const at = now();
      const keysEndAt = new Date(at.getTime() + idempotencyTtlMs);
      const inserted = await insertTasks(sql, inserts, at, keysEndAt, maxQueued);
      if (inserted.hasConflict || inserted.queued > maxQueued) throw insertConflict;
      await jobs.add({ query: sql.queryAndCommit }, inserted.rows);
      return inserted.number;
    });
    onCommit(number, inserts.length);
    return true;
  } catch (error) {
    if (error === insertConflict) return false;
    throw error;
  }
}

/** Thrown to roll back. */
const insertConflict = new Error("an id or a key exists, or the queue or a quota is full");

/** A task that waits until it is stored, or found. */
export interface Pending<Result> {
  task: Task;
  insert: TaskInsert;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/** Tasks in one transaction. */
const batchSize = 64;

/**
 * Returns a function that gives a task to `settleSome`, which settles what it can of a batch and returns the rest, to be settled
 * next. Tasks that arrive meanwhile share the next batch, in their order.
 *
 * @param byOwner Batches are of one owner each, and those of several go on at the same time.
 */
export function createBatches<Result>(
  settleSome: (batch: readonly Pending<Result>[]) => Promise<readonly Pending<Result>[]>,
  { byOwner = false } = {},
): (task: Task, idempotency?: Idempotency) => Promise<Result> {
  /** What waits; a list is here while its batches are settled. */
  const queues = new Map<string, Pending<Result>[]>();

  async function run(name: string, waiting: Pending<Result>[]): Promise<void> {
    queues.set(name, waiting);
    while (waiting.length > 0) await settleAll(waiting.splice(0, batchLength(waiting)), waiting);
    queues.delete(name);
  }

  async function settleAll(batch: readonly Pending<Result>[], waiting: Pending<Result>[]): Promise<void> {
    try {
      for (let left = batch; left.length > 0;) left = await settleSome(left);
    } catch (error) {
      const failure = toStoreError(error);
      const isOutage = failure !== error;
      // During an outage every further batch would wait until its own timeout.
      if (isOutage) for (const { reject } of [...batch, ...waiting.splice(0)]) reject(failure);
      else if (batch.length === 1) for (const { reject } of batch) reject(failure);
      // One task is at fault: the others succeed alone. Promises that are settled stay settled.
      else for (const pending of batch) await settleAll([pending], waiting);
    }
  }

  return (task, idempotency) =>
    new Promise((resolve, reject) => {
      const pending = { task, insert: toInsert(task, idempotency), resolve, reject };
      const name = byOwner ? (pending.insert.owner ?? "") : "";
      const waiting = queues.get(name);
      if (waiting === undefined) void run(name, [pending]);
      else waiting.push(pending);
    });
}

/** Returns the length of the next batch, in which all ids and keys differ. */
function batchLength(waiting: readonly Pick<Pending<never>, "insert">[]): number {
  const seen = new Set<string>();
  const first = waiting.slice(0, batchSize);
  const end = first.findIndex(({ insert: { id, idempotency } }) => {
    const names = [`id ${id}`, ...(idempotency ? [`key ${idempotency.key}`] : [])];
    const isSeen = names.some((name) => seen.has(name));
    for (const name of names) seen.add(name);
    return isSeen;
  });
  return end === -1 ? first.length : end;
}
