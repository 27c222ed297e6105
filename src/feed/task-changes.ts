import { randomUUIDv7 } from "node:crypto";
import { ServiceError } from "../model/errors.ts";
import { changeCollection } from "./collection-changes.ts";
import { hasEnded, type State, type Task, type TaskOptions, transitions } from "../model/task.ts";
import type { TraceContext } from "../model/trace-context.ts";

/** What a change of a task may set; everything else follows from the transition. */
export type TaskChange = Partial<
  Pick<
    Task,
    | "state"
    | "attempts"
    | "progress"
    | "info"
    | "file"
    | "files"
    | "library"
    | "error"
    | "retry_at"
    | "finish_requested"
    | "kind"
    | "counts"
    | "growth"
    | "warnings"
  >
>;

/**
 * Returns a queued task with a new id, not stored yet; `owner` is the name of the key that creates it, `trace` that of
 * the request.
 */
export function newTask(
  url: string,
  options: TaskOptions,
  now: Date,
  owner?: string,
  { traceparent, tracestate }: TraceContext = {},
): Task {
  const created_at = now.toISOString();
  return {
    id: randomUUIDv7(),
    url,
    options,
    state: "queued",
    attempts: 0,
    created_at,
    updated_at: created_at,
    started_at: null,
    finished_at: null,
    progress: null,
    info: null,
    file: null,
    removed_at: null,
    error: null,
    ...(owner !== undefined && { owner }),
    ...(traceparent !== undefined && { traceparent }),
    ...(tracestate !== undefined && { tracestate }),
  };
}

/**
 * Returns a copy of `task` with `change` applied and `updated_at` set, without `files` if it has no `file`, and `removed_at` if the change takes the file
 * from a task that stays in its state. A transition also sets `started_at` and `finished_at`, clears `progress` when
 * the task leaves `running`, `finish_requested` when it ends, and a `retry_at` that `change` does not set; of a collection
 * see `changeCollection`.
 *
 * @throws ServiceError `conflict` if `transitions` does not allow `change.state`.
 */
export function changeTask(task: Task, change: TaskChange, now: Date): Task {
  const at = now.toISOString();
  const changed: Task = { ...task, ...change, updated_at: at };
  if (changed.file === null) delete changed.files;
  if (change.state === undefined) {
    if (task.file !== null && changed.file === null) changed.removed_at = at;
    return changed;
  }
  if (!transitions[task.state].includes(change.state)) throw transitionError(task, change.state);
  if (change.state === "running") changed.started_at = at;
  if (change.state !== "running") changed.progress = null;
  if (change.retry_at === undefined) delete changed.retry_at;
  changed.finished_at = hasEnded(change.state) ? at : null;
  if (hasEnded(change.state)) delete changed.finish_requested;
  return task.kind === "collection" ? changeCollection(changed, task.state) : changed;
}

function transitionError({ id, state }: Task, to: State): ServiceError {
  const message = `task ${id} ${statesInWords[state]} and cannot ${transitionsInWords[to]}`;
  return new ServiceError("conflict", message);
}

const statesInWords: Readonly<Record<State, string>> = {
  queued: "is queued",
  running: "is running",
  succeeded: "has already succeeded",
  failed: "has already failed",
  canceled: "has already been canceled",
};

const transitionsInWords: Readonly<Record<State, string>> = {
  queued: "be queued",
  running: "be run",
  succeeded: "succeed",
  failed: "fail",
  canceled: "be canceled",
};
