import type { Task } from "../../model/task.ts";
import type { Idempotency } from "../store-types.ts";
import { toStoreError } from "./database-errors.ts";
import { type TaskInsert, toInsert } from "./task-inserts.ts";

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
