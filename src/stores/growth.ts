import type { Growth } from "../model/collection.ts";
import type { Task } from "../model/task.ts";

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
