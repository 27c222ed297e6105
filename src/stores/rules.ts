import { ServiceError } from "../errors.ts";
import type { Task } from "../task.ts";
import { changeTask, type TaskChange } from "../task-changes.ts";
import type { Idempotency } from "./store.ts";

/** What every store decides alike, and the words in which it refuses. */

/** Tasks that are queued at most where nothing else is said; further ones are refused. */
export const defaultMaxQueued = 100_000;

/** A full queue has room again as soon as a task ends, but everybody waits for that. */
const fullRetryAfterS = 30;

/** The task as a claim hands it out; one whose worker died goes on, with the progress that it had made. */
export function toRunning(task: Task, now: Date): Task {
  if (task.state !== "running") {
    return changeTask(task, { state: "running", attempts: task.attempts + 1 }, now);
  }
  const queued = changeTask(task, { state: "queued" }, now);
  return changeTask(queued, { state: "running", progress: task.progress }, now);
}

/** `deaths` behind an update of a task that had as many before. */
export function stalledCountAfter(
  before: number,
  { state }: TaskChange,
  madeProgress = false,
): number {
  return madeProgress || state !== undefined ? 0 : before;
}

/** @throws ServiceError `unavailable` where no further task may be queued. */
export function assertQueueNotFull(queued: number, maxQueued: number): void {
  if (queued < maxQueued) return;
  throw new ServiceError("unavailable", `the queue is full: ${queued} tasks, limit ${maxQueued}`, {
    retryAfterS: fullRetryAfterS,
  });
}

/** @param id As the client sent it; the message has its first 100 characters. */
export function taskNotFoundError(id: string): ServiceError {
  return new ServiceError("not_found", `there is no task ${id.slice(0, 100)}`);
}

export function duplicateTaskError(id: string): ServiceError {
  return new ServiceError("conflict", `task ${id} cannot be stored: its id is taken`);
}

export function leaseLostError(id: string): ServiceError {
  return new ServiceError("conflict", `task ${id} cannot be changed: its lease is no longer valid`);
}

export function idempotencyMismatchError({ key }: Idempotency): ServiceError {
  return new ServiceError(
    "idempotency_mismatch",
    `the idempotency key ${JSON.stringify(key)} was used for another request in the last 24 hours`,
  );
}

export function storeClosedError(name: string): ServiceError {
  return new ServiceError("unavailable", `the ${name} task store is closed`);
}
