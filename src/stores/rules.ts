import { ServiceError } from "../errors.ts";
import { changeTask, type Task } from "../task.ts";
import type { Idempotency } from "./store.ts";

/** What every store decides alike, and the words in which it refuses. */

/** The host that a task counts for in `exceptHosts`; `""` for an address that is no URL. */
export function hostOf(url: string): string {
  // Most addresses come in the parser's own spelling: it would only find what stands there.
  return /^https?:\/\/([a-z0-9.-]+)\//.exec(url)?.[1] ?? URL.parse(url)?.host ?? "";
}

/** The task as a claim hands it out; one whose worker died goes through the queue first. */
export function startRun(task: Task, now: Date): Task {
  const queued = task.state === "running" ? changeTask(task, { state: "queued" }, now) : task;
  return changeTask(queued, { state: "running", attempts: task.attempts + 1 }, now);
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
