import { randomUUID } from "node:crypto";
import { hostOf, type Task } from "../../task.ts";
import { assertQueueNotFull, duplicateTaskError, idempotencyMismatchError } from "../rules.ts";
import { type Idempotency, idempotencyTtlMs } from "../store.ts";
import { type TaskInsert, type ExistingRows, readExisting, insertTasks } from "./task-inserts.ts";
import type { Database } from "./database.ts";
import { toStoreError } from "./database-errors.ts";
import type { JobQueue } from "./job-queue.ts";

/** Stores a task; gives its document, or the one that was answered under its key before. */
export type InsertTask = (task: Task, idempotency?: Idempotency) => Promise<string>;

export interface BatchInserterOptions {
  database: Database;
  jobs: JobQueue;
  maxQueued: number;
  now: () => Date;
  /** Told of what was written: the newest event and the number of events. */
  written: (number: number, count: number) => void;
}

/** The tasks of one transaction. */
const batchSize = 64;

interface Waiting {
  arrival: TaskInsert;
  settle(document: string): void;
  reject(error: unknown): void;
}

/** Tasks that arrive while others are being stored share the next transaction, in their order. */
export function createBatchInserter(options: BatchInserterOptions): InsertTask {
  const { database, jobs, maxQueued, now, written } = options;
  const waiting: Waiting[] = [];
  let isBusy = false;
  /** Whether to read what is known before the next write, which would run into it. */
  let mustReadExisting = false;

  async function run(): Promise<void> {
    if (isBusy) return;
    isBusy = true;
    while (waiting.length > 0) await settleAll(waiting.splice(0, batchOf(waiting)));
    isBusy = false;
  }

  async function settleAll(batch: readonly Waiting[]): Promise<void> {
    try {
      for (let left = batch; left.length > 0;) left = await settleSome(left);
    } catch (error) {
      const failure = toStoreError(error);
      const isOutage = failure !== error;
      // Each further batch would wait as long for nothing.
      if (isOutage) for (const { reject } of [...batch, ...waiting.splice(0)]) reject(failure);
      else if (batch.length === 1) for (const { reject } of batch) reject(failure);
      // What is wrong with one of them is not the others' misfortune. Who is settled stays so.
      else for (const one of batch) await settleAll([one]);
    }
  }

  /** Gives those that have to be looked at again. */
  async function settleSome(batch: readonly Waiting[]): Promise<readonly Waiting[]> {
    const { fresh, room } = mustReadExisting
      ? await settleExisting(batch)
      : { fresh: batch, room: batch.length };
    const admitted = fresh.slice(0, room);
    if (admitted.length === 0) return [];
    mustReadExisting = !(await store(admitted.map(({ arrival }) => arrival)));
    if (mustReadExisting) return fresh;
    for (const { arrival, settle } of admitted) settle(arrival.document);
    return fresh.slice(admitted.length);
  }

  /** Settles those that the database knows, and all where it has no room; gives the others. */
  async function settleExisting(batch: readonly Waiting[]) {
    const arrivals = batch.map(({ arrival }) => arrival);
    const known = await readExisting(database, arrivals, now());
    const fresh = batch.filter((one) => !isSettledBy(known, one));
    try {
      assertQueueNotFull(known.queued, maxQueued);
      return { fresh, room: maxQueued - known.queued };
    } catch (error) {
      for (const { reject } of fresh) reject(error);
      return { fresh: [], room: 0 };
    }
  }

  /** `false`, and nothing is stored, where another process has changed what stood before. */
  async function store(arrivals: readonly TaskInsert[]): Promise<boolean> {
    try {
      const number = await database.transaction(async (sql) => {
        const at = now();
        const keysEndAt = new Date(at.getTime() + idempotencyTtlMs);
        const stored = await insertTasks(sql, arrivals, at, keysEndAt);
        if (stored.hasConflict || stored.queued > maxQueued) throw insertConflict;
        const deliveries = arrivals.flatMap(({ job, id, host }, index) =>
          job === null ? [] : { job, id, host, seq: stored.firstSeq + index },
        );
        await jobs.add({ query: sql.finish }, deliveries);
        return stored.number;
      });
      written(number, arrivals.length);
      return true;
    } catch (error) {
      if (error === insertConflict) return false;
      throw error;
    }
  }

  return (task, idempotency) =>
    new Promise((settle, reject) => {
      waiting.push({ arrival: toArrival(task, idempotency), settle, reject });
      void run();
    });
}

const insertConflict = new Error("another process was faster");

/** How many of the first share no id and no key. */
function batchOf(waiting: readonly Waiting[]): number {
  const seen = new Set<string>();
  const first = waiting.slice(0, batchSize);
  const end = first.findIndex(({ arrival: { id, idempotency } }) => {
    const marks = [`id ${id}`, ...(idempotency ? [`key ${idempotency.key}`] : [])];
    const isSeen = marks.some((mark) => seen.has(mark));
    for (const mark of marks) seen.add(mark);
    return isSeen;
  });
  return end === -1 ? first.length : end;
}

function isSettledBy(known: ExistingRows, { arrival, settle, reject }: Waiting): boolean {
  const { id, idempotency } = arrival;
  const use = idempotency && known.uses.get(idempotency.key);
  if (idempotency !== undefined && use !== undefined) {
    if (use.fingerprint === idempotency.fingerprint) settle(use.answer);
    else reject(idempotencyMismatchError(idempotency));
    return true;
  }
  if (!known.ids.has(id)) return false;
  reject(duplicateTaskError(id));
  return true;
}

function toArrival(task: Task, idempotency: Idempotency | undefined): TaskInsert {
  const { id, state, url } = task;
  return {
    id,
    state,
    host: hostOf(url),
    document: JSON.stringify(task),
    job: state === "queued" ? randomUUID() : null,
    idempotency: idempotency && { ...idempotency },
  };
}
