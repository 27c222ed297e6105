import { ServiceError } from "../errors.ts";
import { changeTask, type Task, type TaskChange } from "../task.ts";
import type { Idempotency } from "./store.ts";

/** What every store decides alike, and the words in which it refuses. */

/** Tasks that are queued at most where nothing else is said; further ones are refused. */
export const defaultMaxQueued = 100_000;

/** A full queue has room again as soon as a task ends, but everybody waits for that. */
const fullRetryAfterS = 30;

/** The host that a task counts for in `exceptHosts`; `""` for an address that is no URL. */
export function hostOf(url: string): string {
  // Most addresses come in the parser's own spelling: it would only find what stands there.
  return /^https?:\/\/([a-z0-9.-]+)\//.exec(url)?.[1] ?? URL.parse(url)?.host ?? "";
}

/** The task as a claim hands it out; one whose worker died goes on, with the progress that it had made. */
export function startRun(task: Task, now: Date): Task {
  if (task.state !== "running") {
    return changeTask(task, { state: "running", attempts: task.attempts + 1 }, now);
  }
  const queued = changeTask(task, { state: "queued" }, now);
  return changeTask(queued, { state: "running", progress: task.progress }, now);
}

/** `deaths` behind an update of a task that had as many before. */
export function deathsAfter(before: number, { state }: TaskChange, gotFurther = false): number {
  return gotFurther || state !== undefined ? 0 : before;
}

/** @throws ServiceError `unavailable` where no further task may be queued. */
export function assertRoom(queued: number, maxQueued: number): void {
  if (queued < maxQueued) return;
  throw new ServiceError(
    "unavailable",
    `the task cannot be queued: at most ${maxQueued} may be, and ${queued} are`,
    { retryAfterS: fullRetryAfterS },
  );
}

export function unknownTask(id: string): ServiceError {
  return new ServiceError("not_found", `there is no task ${id}`);
}

export function duplicateTask(id: string): ServiceError {
  return new ServiceError("conflict", `task ${id} cannot be stored: its id is taken`);
}

export function lostLease(id: string): ServiceError {
  return new ServiceError(
    "conflict",
    `task ${id} cannot be changed under this lease: it is not the one that holds the task now`,
  );
}

export function mismatchedKey({ key }: Idempotency): ServiceError {
  return new ServiceError(
    "idempotency_mismatch",
    `the idempotency key ${JSON.stringify(key)} was used for another request in the last 24 hours`,
  );
}

export function closedStore(name: string): ServiceError {
  return new ServiceError("unavailable", `the ${name} task store is closed`);
}
