import { randomUUID } from "node:crypto";
import { hostOf, type Task } from "../../model/task.ts";
import { fileColumns } from "../documents.ts";
import { assertMayQueue } from "../quotas.ts";
import {
  assertQueueNotFull,
  duplicateTaskError,
  idempotencyMismatchError,
  ofOwner,
} from "../rules.ts";
import { type Idempotency, idempotencyTtlMs } from "../store.ts";
import type { Database } from "./database.ts";
import { toStoreError } from "./database-errors.ts";
import type { JobQueue } from "./job-queue.ts";
import { type ExistingRows, insertTasks, readExisting, type TaskInsert } from "./task-inserts.ts";

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
  const { database, jobs, maxQueued, now, onCommit } = options;
  const waiting: Pending[] = [];
  let isBusy = false;
  /** Whether the next write would fail because of rows that exist. */
  let mustReadExisting = false;

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

  /** Settles what it can of the batch. Returns the rest, to be settled next. */
  async function settleSome(batch: readonly Pending[]): Promise<readonly Pending[]> {
    const { fresh, admitted } = mustReadExisting
      ? await settleExisting(batch)
      : { fresh: batch, admitted: batch };
    if (admitted.length === 0) return [];
    mustReadExisting = !(await insertAndCommit(admitted.map(({ insert }) => insert)));
    if (mustReadExisting) return fresh;
    for (const { insert, resolve } of admitted) resolve(insert.document);
    return fresh.filter((pending) => !admitted.includes(pending));
  }

  /**
   * Settles those whose id or key exists, and those for which the queue or their owner's quota is full. Returns
   * the others, and those of them for which there is a free place.
   */
  async function settleExisting(batch: readonly Pending[]) {
    const inserts = batch.map(({ insert }) => insert);
    const existing = await readExisting(database, inserts, now());
    const fresh = batch.filter(
      (pending) => !isSettledBy(existing, pending) && !isRefusedBy(existing, pending, maxQueued),
    );
    return { fresh, admitted: admit(fresh, existing, maxQueued) };
  }

  /** Returns false, with nothing stored, if an id or a key exists or the queue or a quota is full. */
  async function insertAndCommit(inserts: readonly TaskInsert[]): Promise<boolean> {
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

  return (task, idempotency) =>
    new Promise((resolve, reject) => {
      waiting.push({ insert: toInsert(task, idempotency), resolve, reject });
      void run();
    });
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

/** Returns those for which there is a free place, if all others of them are stored before. */
function admit(
  fresh: readonly Pending[],
  { queued, quotas }: ExistingRows,
  maxQueued: number,
): readonly Pending[] {
  const free = new Map(
    [...quotas].map(([owner, { limits, use }]) => [
      owner,
      (limits.max_queued ?? Infinity) - use.queued,
    ]),
  );
  return fresh.slice(0, maxQueued - queued).filter(({ insert: { owner } }) => {
    const left = free.get(owner ?? "") ?? Infinity;
    free.set(owner ?? "", left - 1);
    return left > 0;
  });
}

/** Rejects if the queue or the quota of the task's owner is full. */
function isRefusedBy(
  { queued, quotas }: ExistingRows,
  { insert: { owner }, reject }: Pending,
  maxQueued: number,
): boolean {
  try {
    assertQueueNotFull(queued, maxQueued);
    const quota = quotas.get(owner ?? "");
    if (quota !== undefined) assertMayQueue(quota.limits, quota.use);
    return false;
  } catch (error) {
    reject(error);
    return true;
  }
}

function isSettledBy(existing: ExistingRows, { insert, resolve, reject }: Pending): boolean {
  const { id, idempotency } = insert;
  const use = idempotency && existing.uses.get(idempotency.key);
  if (idempotency !== undefined && use !== undefined) {
    if (use.fingerprint === idempotency.fingerprint) resolve(use.answer);
    else reject(idempotencyMismatchError(idempotency));
    return true;
  }
  if (!existing.ids.has(id)) return false;
  reject(duplicateTaskError(id));
  return true;
}

function toInsert(task: Task, idempotency: Idempotency | undefined): TaskInsert {
  const { id, state, url, owner = null } = task;
  return {
    id,
    state,
    owner,
    host: hostOf(url),
    document: JSON.stringify(task),
    ...fileColumns(task),
    job: state === "queued" ? randomUUID() : null,
    idempotency: ofOwner(task, idempotency),
  };
}
