import { randomUUID } from "node:crypto";
import type { Task } from "../../task.ts";
import { assertRoom, duplicateTask, hostOf, mismatchedKey } from "../rules.ts";
import { type Idempotency, idempotencyTtlMs } from "../store.ts";
import { type Arrival, type Known, readKnown, writeArrivals } from "./arrivals.ts";
import type { Database } from "./database.ts";
import { storeFailure } from "./failure.ts";
import type { Jobs } from "./jobs.ts";

/** Stores a task; gives its document, or the one that was answered under its key before. */
export type Create = (task: Task, idempotency?: Idempotency) => Promise<string>;

export interface CreatesOptions {
  database: Database;
  jobs: Jobs;
  maxQueued: number;
  now: () => Date;
  /** Told of what was written: the newest event and the number of events. */
  written: (number: number, count: number) => void;
}

/** The tasks of one transaction. */
const batchSize = 64;

interface Waiting {
  arrival: Arrival;
  settle(document: string): void;
  reject(error: unknown): void;
}

/** Tasks that arrive while others are being stored share the next transaction, in their order. */
export function createCreates(options: CreatesOptions): Create {
  const { database, jobs, maxQueued, now, written } = options;
  const waiting: Waiting[] = [];
  let isBusy = false;
  /** Whether to read what is known before the next write, which would run into it. */
  let isWary = false;

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
      const failure = storeFailure(error);
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
    const { fresh, room } = isWary ? await sift(batch) : { fresh: batch, room: batch.length };
    const admitted = fresh.slice(0, room);
    if (admitted.length === 0) return [];
    isWary = !(await store(admitted.map(({ arrival }) => arrival)));
    if (isWary) return fresh;
    for (const { arrival, settle } of admitted) settle(arrival.document);
    return fresh.slice(admitted.length);
  }

  /** Settles those that the database knows, and all where it has no room; gives the others. */
  async function sift(batch: readonly Waiting[]) {
    const arrivals = batch.map(({ arrival }) => arrival);
    const known = await readKnown(database, arrivals, now());
    const fresh = batch.filter((one) => !isSettledBy(known, one));
    try {
      assertRoom(known.queued, maxQueued);
      return { fresh, room: maxQueued - known.queued };
    } catch (error) {
      for (const { reject } of fresh) reject(error);
      return { fresh: [], room: 0 };
    }
  }

  /** `false`, and nothing is stored, where another process has changed what stood before. */
  async function store(arrivals: readonly Arrival[]): Promise<boolean> {
    try {
      const number = await database.transaction(async (sql) => {
        const at = now();
        const keysEndAt = new Date(at.getTime() + idempotencyTtlMs);
        const stored = await writeArrivals(sql, arrivals, at, keysEndAt);
        if (stored.isOutrun || stored.queued > maxQueued) throw outrun;
        const deliveries = arrivals.flatMap(({ job, id, host }, index) =>
          job === null ? [] : { job, id, host, seq: stored.firstSeq + index },
        );
        await jobs.add({ query: sql.finish }, deliveries);
        return stored.number;
      });
      written(number, arrivals.length);
      return true;
    } catch (error) {
      if (error === outrun) return false;
      throw error;
    }
  }

  return (task, idempotency) =>
    new Promise((settle, reject) => {
      waiting.push({ arrival: toArrival(task, idempotency), settle, reject });
      void run();
    });
}

const outrun = new Error("another process was faster");

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

function isSettledBy(known: Known, { arrival, settle, reject }: Waiting): boolean {
  const { id, idempotency } = arrival;
  const use = idempotency && known.uses.get(idempotency.key);
  if (idempotency !== undefined && use !== undefined) {
    if (use.fingerprint === idempotency.fingerprint) settle(use.answer);
    else reject(mismatchedKey(idempotency));
    return true;
  }
  if (!known.ids.has(id)) return false;
  reject(duplicateTask(id));
  return true;
}

function toArrival(task: Task, idempotency: Idempotency | undefined): Arrival {
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
