import { randomUUIDv7 } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import { ServiceError } from "./errors.ts";
import { PageInfo } from "./page-info.ts";
import { nullableNumber, nullableCount, nullable, oneOf, nullableText, time } from "./schema.ts";

export const states = ["queued", "running", "succeeded", "failed", "canceled"] as const;
export type State = (typeof states)[number];

/** The moves a task may make; every store refuses all others with `conflict`. */
export const transitions: Readonly<Record<State, readonly State[]>> = {
  queued: ["running", "canceled"],
  running: ["queued", "succeeded", "failed", "canceled"],
  succeeded: [],
  failed: ["queued"],
  canceled: ["queued"],
};

export const TaskOptions = Type.Object(
  {
    format_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: "a format that /info listed" }),
    ),
    max_height: Type.Optional(Type.Integer({ minimum: 1, maximum: 65535, description: "pixels" })),
    audio_only: Type.Optional(Type.Boolean({ description: "the sound without the pictures" })),
  },
  { description: "which format to take; the best one where nothing is said" },
);
export type TaskOptions = Static<typeof TaskOptions>;

export const Progress = Type.Object({
  stage: oneOf(["resolving", "downloading", "processing"], "what the service is doing"),
  downloaded_bytes: nullableCount("bytes"),
  total_bytes: nullableCount("bytes"),
  speed: nullableNumber("bytes per second"),
  eta: nullableNumber("seconds"),
});

export type Progress = Static<typeof Progress>;

export const TaskFile = Type.Object({
  name: Type.String(),
  mime_type: Type.String(),
  size: Type.Integer({ minimum: 0, description: "bytes" }),
  sha256: Type.String({ description: "hexadecimal" }),
  duration: nullableNumber("seconds"),
  width: nullableCount("pixels"),
  height: nullableCount("pixels"),
  url: Type.String({ description: "where to fetch it" }),
});

export type TaskFile = Static<typeof TaskFile>;

export const TaskFailure = Type.Object({
  code: Type.String({ description: "one of the service's error codes" }),
  message: Type.String(),
  retryable: Type.Boolean(),
});

/** A task as clients see it and as stores keep it. Times are RFC 3339 in UTC. */
export const Task = Type.Object(
  {
    id: Type.String({ description: "UUIDv7 (RFC 9562)" }),
    url: Type.String({ description: "the video page" }),
    options: TaskOptions,
    state: oneOf(states, "where the task stands"),
    attempts: Type.Integer({ minimum: 0, description: "runs so far" }),
    created_at: time("when it was accepted"),
    updated_at: time("when it last changed"),
    started_at: nullableText("when its latest run began"),
    finished_at: nullableText("when it succeeded, failed or was canceled"),
    progress: nullable(Progress, "while it runs"),
    info: nullable(PageInfo, "the page information that it worked from"),
    file: nullable(TaskFile, "once it has succeeded"),
    error: nullable(TaskFailure, "why the latest run failed"),
  },
  { title: "Task" },
);
export type Task = Static<typeof Task>;

/** What `update` may change; the rest follows from the move. */
export type TaskChange = Partial<
  Pick<Task, "state" | "attempts" | "progress" | "info" | "file" | "error">
>;

/** A queued task that nobody has stored yet. */
export function newTask(url: string, options: TaskOptions, now: Date): Task {
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
    error: null,
  };
}

/**
 * The task after `change`; the given one is left as it is. Sets `updated_at` and, on a move,
 * `started_at` and `finished_at`; `progress` lasts only as long as the run.
 *
 * @throws ServiceError `conflict` where `moves` does not allow `change.state`.
 */
export function changeTask(task: Task, change: TaskChange, now: Date): Task {
  const at = now.toISOString();
  const changed: Task = { ...task, ...change, updated_at: at };
  if (change.state === undefined) return changed;
  if (!transitions[task.state].includes(change.state)) {
    const allowed = transitions[task.state].join(", ") || "no other state";
    throw new ServiceError(
      "conflict",
      `task ${task.id} is ${task.state} and cannot become ${change.state}; it may become ${allowed}`,
    );
  }
  if (change.state === "running") changed.started_at = at;
  if (change.state !== "running") changed.progress = null;
  const ended = change.state !== "running" && change.state !== "queued";
  changed.finished_at = ended ? at : null;
  return changed;
}
