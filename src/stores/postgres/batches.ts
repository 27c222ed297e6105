import type { Task } from "../../model/task.ts";
import type { Idempotency } from "../idempotency.ts";
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
 * next. Tasks that arrive meanwhile share the next batch, in their order; with `ofOneOwner` only those of the first one's owner.
 */
export function createBatches<Result>(
  settleSome: (batch: readonly Pending<Result>[]) => Promise<readonly Pending<Result>[]>,
  { ofOneOwner = false } = {},
): (task: Task, idempotency?: Idempotency) => Promise<Result> {
  let waiting: Pending<Result>[] = [];
  let isBusy = false;

  async function run(): Promise<void> {
    if (isBusy) return;
    isBusy = true;
    while (waiting.length > 0) await settleAll(takeBatch());
    isBusy = false;
  }

  function takeBatch(): Pending<Result>[] {
    const owner = waiting[0]?.insert.owner;
    const batch = firstDiffering(waiting.filter(({ insert }) => !ofOneOwner || insert.owner === owner));
    const taken = new Set(batch);
    waiting = waiting.filter((pending) => !taken.has(pending));
    return batch;
  }

  async function settleAll(batch: readonly Pending<Result>[]): Promise<void> {
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
      waiting.push({ task, insert: toInsert(task, idempotency), resolve, reject });
      void run();
    });
}

/** Returns the first ones, up to the first that has an id or a key of one before. */
function firstDiffering<Each extends Pick<Pending<never>, "insert">>(waiting: readonly Each[]): Each[] {
  const seen = new Set<string>();
  const first = waiting.slice(0, batchSize);
  const end = first.findIndex(({ insert: { id, idempotency } }) => {
    const names = [`id ${id}`, ...(idempotency ? [`key ${idempotency.key}`] : [])];
    const isSeen = names.some((name) => seen.has(name));
    for (const name of names) seen.add(name);
    return isSeen;
  });
  return end === -1 ? first : first.slice(0, end);
}
