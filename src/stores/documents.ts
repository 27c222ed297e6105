import type { BaseLogger } from "pino";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ServiceError } from "../model/errors.ts";
import { boundInfo } from "../model/bounded-info.ts";
import { withNativeKinds } from "../model/schema.ts";
import { type State, Task } from "../model/task.ts";
import { changeEvent, type TaskEvent } from "../feed/task-events.ts";
import { changeTask, type TaskChange } from "../feed/task-changes.ts";
import { hasEnded, newMessage, type NewMessage } from "./outbox.ts";
import { DamagedTaskError } from "./rules.ts";
import type { TaskPage, UpdateOptions } from "./store.ts";

/** What a store keeps of a task, besides its position in the queue. */
export interface StoredTask {
  id: string;
  state: State;
  /** Null: it has none. */
  owner: string | null;
  /** The task as JSON. */
  document: string;
  /** Null: no claim holds the task. */
  lease: string | null;
  /** As in `Claim`. */
  stalledCount: number;
  /** Size of its files together; 0: it has none. */
  bytes: number;
  /** When it has finished; null: it has no file. */
  finishedAt: string | null;
}

export interface TaskWrite {
  task: Task;
  /** What to store of it. */
  stored: Omit<StoredTask, "id" | "owner" | "lease">;
  /** What to publish: `info`, by far the longest member, only if the change has set it. */
  event: TaskEvent;
  /** What to tell webhooks' receivers if the change has ended the task. */
  message?: NewMessage;
}

/** A row of a list. */
export interface ListedTask extends Pick<StoredTask, "id" | "document"> {
  seq: number;
}

/** A row that may come after the end of a page, and then needs no document. */
export type PageRow = Omit<ListedTask, "document"> & { document: string | null };

const taskCheck = TypeCompiler.Compile(withNativeKinds(Task));

const isTask = (value: unknown): value is Task => taskCheck.Check(value);

/** Longest record, bytes of JSON. */
const maxRecordBytes = 256_000;

/** Longest page of a list, bytes of its records, unless its only record is longer. */
export const maxPageBytes = 1_000_000;

/**
 * Returns the task, its `info` thinned as `boundInfo` says if the record, which an earlier release may have written, is
 * longer than 256,000 bytes.
 *
 * @throws DamagedTaskError if the document is not a task.
 */
export function parseTask({ id, document }: Pick<StoredTask, "id" | "document">): Task {
  let value: unknown;
  try {
    value = JSON.parse(document);
  } catch (cause) {
    throw new DamagedTaskError(id, "not JSON", cause);
  }
  addLaterFields(value);
  if (isTask(value)) return isLong(document) ? boundTask(value) : value;
  throw new DamagedTaskError(id, "not a task");
}

function isLong(document: string): boolean {
  return document.length > maxRecordBytes / 3 && Buffer.byteLength(document) > maxRecordBytes;
}

function boundTask(task: Task): Task {
  if (task.info === null) return task;
  const others = Buffer.byteLength(JSON.stringify({ ...task, info: null }));
  return { ...task, info: boundInfo(task.info, maxRecordBytes - others, () => [task.options.format_id]) };
}

export interface DamageReport {
  /** Returns what `read` returns; undefined, with one line in the log for each row, if the row is damaged. */
  unlessDamaged<T>(row: { id: string; seq: number }, read: () => T): T | undefined;
  /** Returns the task of the row; undefined as `unlessDamaged` does. */
  parse(row: ListedTask): Task | undefined;
}

/** Bounds the memory; further rows are not logged. */
const maxRows = 1_000;

export function createDamageReport(logger: Pick<BaseLogger, "error"> | undefined): DamageReport {
  const reported = new Set<number>();
  const unlessDamaged: DamageReport["unlessDamaged"] = ({ id, seq }, read) => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof DamagedTaskError)) throw error;
      if (reported.has(seq) || reported.size >= maxRows) return undefined;
      reported.add(seq);
      logger?.error(
        { task: id, seq, reason: error.message },
        "damaged task: it is not listed and does not run; DELETE /tasks/{id} removes it",
      );
      return undefined;
    }
  };
  return { unlessDamaged, parse: (row) => unlessDamaged(row, () => parseTask(row)) };
}

/** Parses a document that this process has written, which needs no check. */
export function parseWritten({ document }: Pick<StoredTask, "document">): Task {
  return JSON.parse(document);
}

/** Returns a deep copy. It is fast for new tasks, whose only object is `options`. */
export function copyTask(task: Task): Task {
  const { options, progress, info, file, files, error } = task;
  return {
    ...task,
    options: { ...options, ...(hasLists(options) && structuredClone(options)) },
    progress: progress && structuredClone(progress),
    info: info && structuredClone(info),
    file: file && structuredClone(file),
    ...(files && { files: structuredClone(files) }),
    error: error && structuredClone(error),
  };
}

function hasLists({ subtitles, audio_languages }: Task["options"]): boolean {
  return subtitles !== undefined || audio_languages !== undefined;
}

/** Adds what earlier releases did not write. */
function addLaterFields(document: unknown): void {
  if (typeof document !== "object" || document === null || "removed_at" in document) return;
  Object.assign(document, { removed_at: null });
}

/**
 * Returns the page of at most `limit` tasks; `found` has at most one more, which shows that there is a next page, and is
 * read no further than to the first row after the page. Rows for which `parse` returns undefined count, but are left out.
 */
export function toPage(
  found: Iterable<PageRow>,
  limit: number,
  parse: (row: ListedTask) => Task | undefined,
): TaskPage {
  const tasks: Task[] = [];
  let [rows, bytes, next] = [0, 0, 0];
  for (const { seq, id, document } of found) {
    bytes += Buffer.byteLength(document ?? "");
    if (document === null || rows === limit || (rows > 0 && bytes > maxPageBytes)) return { tasks, next };
    const task = parse({ seq, id, document });
    if (task !== undefined) tasks.push(task);
    rows += 1;
    next = seq;
  }
  return { tasks };
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
  if (hasFile && before.file === null) throw noFileError(before);
  const changed = toTaskWrite(changeTask(before, change, now), stalledCount, change.info !== undefined);
  if (!hasEnded(change.state)) return changed;
  return { ...changed, message: newMessage(changed.task, changed.stored.document) };
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
    return toTaskWrite(changeTask(before, change, now), stored.stalledCount);
  }
  const queued = changeTask(before, { state: "queued" }, now);
  const task = changeTask(queued, { state: "running", progress: before.progress }, now);
  return toTaskWrite(task, stored.stalledCount);
}

/** Returns by what a task's files are counted and found. */
export function fileColumns({ file, files, finished_at }: Task): Pick<StoredTask, "bytes" | "finishedAt"> {
  if (file === null) return { bytes: 0, finishedAt: null };
  return { bytes: files?.reduce((sum, { size }) => sum + size, 0) ?? file.size, finishedAt: finished_at };
}

function toTaskWrite(given: Task, stalledCount: number, hasNewInfo = false): TaskWrite {
  const whole = JSON.stringify(given);
  const task = hasNewInfo && isLong(whole) ? boundTask(given) : given;
  const document = task === given ? whole : JSON.stringify(task);
  const json = hasNewInfo ? document : JSON.stringify({ ...task, info: undefined });
  const stored = { state: task.state, document, stalledCount, ...fileColumns(task) };
  return { task, stored, event: changeEvent(task, json) };
}

function leaseLostError({ id }: Task): ServiceError {
  return new ServiceError("conflict", `task ${id} cannot be changed: its lease is no longer valid`);
}

function noFileError({ id, state }: Task): ServiceError {
  return new ServiceError("conflict", `task ${id} has no file; its state is ${state}`);
}

function stateError({ id, state }: Task, from: UpdateOptions["from"] = []): ServiceError {
  const rule = `it must be ${from.join(" or ")}`;
  return new ServiceError("conflict", `the state of task ${id} is ${state}; ${rule}`);
}
