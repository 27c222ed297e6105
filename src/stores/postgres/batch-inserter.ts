import type { Task } from "../../model/task.ts";
import { type Idempotency, idempotencyTtlMs } from "../store-types.ts";
import { createBatches, type Pending } from "./batches.ts";
import type { Database } from "./database.ts";
import { createAdmission, readExisting, resolveExisting } from "./existing-rows.ts";
import type { JobQueue } from "./job-queue.ts";
import { insertTasks, type TaskInsert } from "./task-inserts.ts";

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
      const inserted = await insertTasks(sql, inserts, at, keysEndAt, maxQueued);
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
