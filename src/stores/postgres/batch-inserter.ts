import type { Task } from "../../model/task.ts";
import { type Idempotency, idempotencyTtlMs } from "../idempotency.ts";
import type { Database } from "./database.ts";
import { toStoreError } from "./database-errors.ts";
import { createAdmission, readExisting, resolveExisting } from "./existing-rows.ts";
import type { JobQueue } from "./job-queue.ts";
import { insertTasks, type TaskInsert, toInsert } from "./task-inserts.ts";

/** Stores a task. Resolves to its document, or to the one that was stored earlier under its key. */
export type InsertTask = (task: Task, idempotency?: Idempotency) => Promise<string>;

export interface BatchInserterOptions {
  database: Database;
  jobs: JobQueue;
  maxQueued: number;
  now: () => Date;
  /** Called after a commit, with the number of the newest event and the number of events. */
  onCommit: (newest: number, count: number) => void;
}

/** Tasks in one transaction. */
const batchSize = 64;

interface Pending {
  insert: TaskInsert;
  resolve(document: string): void;
  reject(error: unknown): void;
}

/** Tasks that arrive during a transaction share the next one, in their order. */
export function createBatchInserter(options: BatchInserterOptions): InsertTask {
  const settleSome = createSettler(options);
  const waiting: Pending[] = [];
  let isBusy = false;

  async function run(): Promise<void> {
    if (isBusy) return;
    isBusy = true;
    while (waiting.length > 0) await settleAll(waiting.splice(0, batchLength(waiting)));
    isBusy = false;
  }

  async function settleAll(batch: readonly Pending[]): Promise<void> {
    try {
      for (let left = batch; left.length > 0;) left = await settleSome(left);
    } catch (error) {
      const failure = toStoreError(error);
      const isOutage = failure !== error;
      // During an outage every further batch would wait until its own timeout.
      if (isOutage) for (const { reject } of [...batch, ...waiting.splice(0)]) reject(failure);
      else if (batch.length === 1) for (const { reject } of batch) reject(failure);
      // One task is at fault: the others succeed alone. Promises that are settled stay settled.
      else for (const pending of batch) await settleAll([pending]);
    }
  }

  return (task, idempotency) =>
    new Promise((resolve, reject) => {
      waiting.push({ insert: toInsert(task, idempotency), resolve, reject });
      void run();
    });
}

/** Returns a function that settles what it can of a batch, and returns the rest, to be settled next. */
function createSettler(options: BatchInserterOptions) {
  /** Whether the next write would fail because of rows that exist. */
  let mustReadExisting = false;

  return async (batch: readonly Pending[]): Promise<readonly Pending[]> => {
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
 * the others, and those of them for which there is room if all the others are stored before.
 */
async function settleExisting(batch: readonly Pending[], { database, maxQueued, now }: BatchInserterOptions) {
  const inserts = batch.map(({ insert }) => insert);
  const existing = await readExisting(database, inserts, now());
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
      const inserted = await insertTasks(sql, inserts, at, keysEndAt);
      if (inserted.hasConflict || inserted.queued > maxQueued) throw insertConflict;
      const requests = inserts.flatMap(({ job, id, host }, index) =>
        job === null ? [] : { job, id, host, seq: inserted.firstSeq + index },
      );
      await jobs.add({ query: sql.queryAndCommit }, requests);
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

/** Returns the length of the next batch, in which all ids and keys differ. */
function batchLength(waiting: readonly Pending[]): number {
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
