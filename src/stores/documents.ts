import type { BaseLogger } from "pino";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { boundInfo } from "../model/bounded-info.ts";
import { withNativeKinds } from "../model/schema.ts";
import { type State, Task } from "../model/task.ts";
import type { Reused } from "./store-types.ts";
import { DamagedTaskError } from "./rules.ts";
import type { TaskPage } from "./store.ts";

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
  /** 0: a collection has made it, so that lists of tasks do not show it. */
  listed: 0 | 1;
  /** 1: a collection that waits for its members, and takes no place among the running tasks. */
  idle: 0 | 1;
  /** At how many places of collections it is a member. */
  memberships: number;
  /** Key of the video by the task's URL, see `videoKeyOf`. */
  video: number;
  /** Key of the video by the page's canonical URL; null: it is `video`, or unknown. */
  pageVideo: number | null;
  /** Key of the video by the site's own id; null: unknown. */
  siteVideo: number | null;
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

/** Returns undefined if the record is damaged. */
export function tryParseTask(row: Pick<StoredTask, "id" | "document">): Task | undefined {
  try {
    return parseTask(row);
  } catch {
    return undefined;
  }
}

/** Whether a record is longer than 256,000 bytes. */
export function isLong(document: string): boolean {
  return document.length > maxRecordBytes / 3 && Buffer.byteLength(document) > maxRecordBytes;
}

/** Returns the task, its `info` thinned as `boundInfo` says if its record has more bytes than that. */
export function boundTask(task: Task, maxBytes = maxRecordBytes): Task {
  if (task.info === null) return task;
  const others = Buffer.byteLength(JSON.stringify({ ...task, info: null }));
  return { ...task, info: boundInfo(task.info, maxBytes - others, () => [task.options.format_id]) };
}

export interface DamageReport {
  /** Returns what `read` returns; undefined, with one line in the log for each row, if the row is damaged. */
  unlessDamaged<T>(row: { id: string; seq: number }, read: () => T): T | undefined;
  /** Returns the task of the row; undefined as `unlessDamaged` does. */
  parse(row: ListedTask): Task | undefined;
}

/** Bounds the memory; further rows are not logged. */
const maxRows = 1_000;

/** Creates a report of damaged rows, each of which is logged once. */
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

/** Returns what is kept under a key that got a new task: all but what the same request says again, which may be long. */
export function newAnswer(task: Task): string {
  return JSON.stringify({ ...task, url: undefined, options: undefined });
}

/** Begins the answer that is kept under a key if that reused a task. */
const reusedStart = '{"reused":';

/** Longest answer with a task that existed, bytes, unless its URL and files alone are longer: each of many keys may keep one. */
const maxReusedBytes = 16_000;

/**
 * Returns what is kept under a key that got a task that existed: its record, whose `info` is thinned as `boundInfo` says if it is longer
 * than 16,000 bytes, or left out if that is not enough.
 */
export function reusedAnswer(document: string): string {
  return `${reusedStart}${boundReused(document)}}`;
}

function boundReused(document: string): string {
  if (Buffer.byteLength(document) <= maxReusedBytes) return document;
  const task = JSON.parse(document) as Task;
  const bounded = JSON.stringify(boundTask(task, maxReusedBytes));
  return Buffer.byteLength(bounded) <= maxReusedBytes ? bounded : JSON.stringify({ ...task, info: null });
}

/**
 * Returns the answer to a request for `task` that was kept under a key: what `newAnswer` or `reusedAnswer` returned, or a document, which
 * earlier releases kept.
 *
 * @throws DamagedTaskError
 */
export function readAnswer({ id, url, options }: Task, answer: string): Reused {
  const isNew = !answer.startsWith(reusedStart);
  const said = JSON.stringify({ url, options });
  // Of two members with one name the later one counts.
  const document = isNew ? `${said.slice(0, -1)},${answer.slice(1)}` : answer.slice(reusedStart.length, -1);
  return { task: parseTask({ id, document }), isNew };
}

/** Returns a deep copy. It is fast for new tasks, whose only object is `options`. */
export function copyTask(task: Task): Task {
  const { options, ...others } = task;
  if (hasObjects(options) || hasObjects(others)) return structuredClone(task);
  return { ...task, options: { ...options } };
}

function hasObjects(values: object): boolean {
  return Object.values(values).some((value) => typeof value === "object" && value !== null);
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
