import { changeMembers, isIdle, type MemberChange } from "../feed/collection-changes.ts";
import { changeTask, type TaskChange } from "../feed/task-changes.ts";
import { changeEvent, type TaskEvent } from "../feed/task-events.ts";
import type { Growth } from "../model/collection.ts";
import { ServiceError } from "../model/errors.ts";
import { hasEnded, type State, type Task } from "../model/task.ts";
import { hostOf } from "../model/url-parts.ts";
import { boundTask, isLong, parseTask, type StoredTask } from "./documents.ts";
import { newMessage, type NewMessage } from "./outbox.ts";
import type { UpdateOptions } from "./store.ts";
import { pageKeyOf, siteKeyOf, videoKeyOf } from "./video-keys.ts";

/** What a change writes of a task, without what says who may claim it. */
export type ChangedColumns = Omit<StoredTask, "id" | "owner" | "lease" | "listed" | "memberships" | "video">;

export interface TaskWrite {
  task: Task;
  stored: ChangedColumns;
  /** What to publish: `info`, by far the longest member, only if the change has set it. */
  event: TaskEvent;
  /** The message to webhooks' receivers if the change has ended the task. */
  message?: NewMessage;
}

/**
 * Applies an update.
 *
 * @throws ServiceError `conflict` if the lease, the state, a missing file or the transition does not allow it.
 */
export function updateDocument(
  stored: StoredTask,
  change: TaskChange,
  { lease, from, hasFile = false, stalledCount = change.state === undefined ? stored.stalledCount : 0 }: UpdateOptions,
  now: Date,
): TaskWrite {
  const before = parseTask(stored);
  if (lease !== undefined && lease !== stored.lease) throw leaseLostError(before);
  if (from !== undefined && !from.includes(before.state)) throw stateError(before, from);
  if (hasFile && before.file === null) {
    throw new ServiceError("conflict", `task ${before.id} has no file; its state is ${before.state}`);
  }
  const hasNewInfo = change.info !== undefined;
  return withMessage(before, toTaskWrite(changeTask(before, change, now), { ...stored, stalledCount }, hasNewInfo));
}

/** Adds the message about a task that the change has ended; there is none about one that a collection has made. */
function withMessage(before: Task, changed: TaskWrite): TaskWrite {
  const { task, stored } = changed;
  const isEnd = hasEnded(task.state) && task.state !== before.state;
  if (!isEnd || task.collection !== undefined) return changed;
  return { ...changed, message: newMessage(task, stored.document) };
}

/**
 * Applies changes of its members to a collection.
 *
 * @throws DamagedTaskError
 */
export function followMembers(stored: StoredTask, changes: readonly MemberChange[], now: Date): TaskWrite {
  const before = parseTask(stored);
  return withMessage(before, toTaskWrite(changeMembers(before, changes, now), stored));
}

export interface GrowthStep {
  changes: readonly MemberChange[];
  /** What is left to be done; null: nothing. */
  growth: Growth | null;
  warnings?: Task["warnings"];
}

/**
 * Applies a step of its growth to a collection.
 *
 * @param before The collection, as `parseTask` returns it.
 */
export function growDocument(
  stored: StoredTask,
  before: Task,
  { changes, growth, warnings }: GrowthStep,
  now: Date,
): TaskWrite {
  const { growth: _, ...rest } = before;
  const left: Partial<Task> = growth === null ? { progress: null, error: null } : { growth };
  const task: Task = { ...rest, ...left, ...(warnings && { warnings }) };
  return withMessage(before, toTaskWrite(changeMembers(task, changes, now), { ...stored, stalledCount: 0 }));
}

/** @throws ServiceError `conflict` if the lease does not hold the task; DamagedTaskError. */
export function parseHeld(stored: StoredTask, lease: string): Task {
  const task = parseTask(stored);
  if (lease !== stored.lease) throw leaseLostError(task);
  return task;
}

/**
 * Makes a task run for a claim. The run of a dead worker continues: same attempt, its progress kept.
 *
 * @throws DamagedTaskError
 */
export function claimDocument(stored: StoredTask, now: Date): TaskWrite {
  const before = parseTask(stored);
  if (before.state !== "running") {
    const change = { state: "running", attempts: before.attempts + 1 } as const;
    return toTaskWrite(changeTask(before, change, now), stored);
  }
  const queued = changeTask(before, { state: "queued" }, now);
  const task = changeTask(queued, { state: "running", progress: before.progress }, now);
  return toTaskWrite(task, stored);
}

/** Returns what is stored of a new task, whichever the store; `document` is the task as JSON. */
export function newColumns(task: Task, document: string) {
  const { id, state, url, options, owner, collection } = task;
  const listed: StoredTask["listed"] = collection === undefined ? 1 : 0;
  return {
    id,
    state,
    owner: owner ?? null,
    host: hostOf(url),
    document,
    ...fileColumns(task),
    listed,
    video: videoKeyOf(url, options, owner),
    siteVideo: siteKeyOf(task),
  };
}

/** Returns the columns by which a task's files are counted and found. */
function fileColumns({ file, files, finished_at }: Task): Pick<StoredTask, "bytes" | "finishedAt"> {
  if (file === null) return { bytes: 0, finishedAt: null };
  return { bytes: files?.reduce((sum, { size }) => sum + size, 0) ?? file.size, finishedAt: finished_at };
}

function toTaskWrite(given: Task, earlier: KeptColumns, hasNewInfo = false): TaskWrite {
  const whole = JSON.stringify(given);
  const task = hasNewInfo && isLong(whole) ? boundTask(given) : given;
  const document = task === given ? whole : JSON.stringify(task);
  const json = hasNewInfo ? document : JSON.stringify({ ...task, info: undefined });
  const { stalledCount } = earlier;
  const pageVideo = hasNewInfo ? pageKeyOf(task) : earlier.pageVideo;
  const siteVideo = hasNewInfo ? siteKeyOf(task) : earlier.siteVideo;
  const idle = isIdle(task) ? 1 : 0;
  const stored = {
    state: task.state,
    document,
    stalledCount,
    idle,
    pageVideo,
    siteVideo,
    ...fileColumns(task),
  } as const;
  return { task, stored, event: changeEvent(task, json) };
}

/** What a change may leave as it is. */
type KeptColumns = Pick<StoredTask, "stalledCount" | "pageVideo" | "siteVideo">;

function leaseLostError({ id }: Task): ServiceError {
  return new ServiceError("conflict", `task ${id} cannot be changed: its lease is no longer valid`);
}

function stateError({ id, state }: Task, from: readonly State[]): ServiceError {
  const rule = `it must be ${from.join(" or ")}`;
  return new ServiceError("conflict", `the state of task ${id} is ${state}; ${rule}`);
}
