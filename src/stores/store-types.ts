import type { Growth } from "../model/collection.ts";
import type { Task } from "../model/task.ts";

/** How long an idempotency key is kept. */
export const idempotencyTtlMs = 24 * 60 * 60 * 1000;

export interface Idempotency {
  /** 1–255 characters, as the client sent it. */
  key: string;
  /** Equal for equal requests, whose tasks have the same URL and options; compared, not read. */
  fingerprint: string;
}

export interface Reused {
  task: Task;
  /** Whether a call with the same key, or this one, has stored it. */
  isNew: boolean;
}

/** An entry that becomes a member. */
export interface NewMember {
  /** Counted from 1; above those of all earlier members. */
  index: number;
  /** Stored unless the owner has one that is reused. */
  task: Task;
}

/** Members that are added to a collection in one step. */
export interface Growing {
  lease: string;
  members: readonly NewMember[];
  /** Whether members may be tasks that exist, as in `reuse`. */
  isReusing: boolean;
  /** What is left to be done once all of `members` are added; null: nothing, which ends the lease. */
  growth: Growth | null;
  /** Replaces those of the collection; absent: they stay. */
  warnings?: Task["warnings"];
}

export interface Grown {
  task: Task;
  /** False: a limit of the queue or of the owner has kept something back. */
  isWhole: boolean;
}

export interface StoredFilesQuery {
  /** 1–200 */
  limit: number;
  /** Only files that come after this one of an earlier page. */
  after?: StoredFile | undefined;
}

export interface StoredFiles {
  /** Of the files of all tasks together. */
  bytes: number;
  oldest: StoredFile[];
}

/** The file of a task that has succeeded; its record may be damaged. */
export interface StoredFile {
  /** Of the task. */
  id: string;
  seq: number;
  /** At least 1: empty files are not listed. */
  bytes: number;
  /** `finished_at` of the task. */
  finishedAt: string;
}
