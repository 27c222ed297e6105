import type { State, Task } from "../model/task.ts";
import type { MemberCounts } from "../model/collection.ts";

/** Members of a collection that have changed their state; `undefined`: they were none before, or are none any more. */
export interface MemberChange {
  before: State | undefined;
  after: State | undefined;
  members: number;
  /** They have failed, and no retry helps. */
  isLasting: boolean;
}

/** Whether a task has failed in a way that no retry helps. */
export function hasFailedForGood({ state, error }: Task): boolean {
  return state === "failed" && error?.retryable === false;
}

/** How many tasks are in each state: none. */
export const noTasks: MemberCounts = Object.freeze({ queued: 0, running: 0, succeeded: 0, failed: 0, canceled: 0 });

/** Whether a collection waits for its members: it runs, but no worker has it or will have it. */
export function isIdle({ kind, state, growth }: Task): boolean {
  return kind === "collection" && state === "running" && (growth === undefined || growth.is_stopped === true);
}

/**
 * Returns a collection after a transition of its own. One that is queued after its end will have its failed and canceled
 * members queued again. One that fails reads no further entries, and has failed once its members have ended.
 *
 * @param before The state before.
 */
export function changeCollection(task: Task, before: State): Task {
  const { slice } = task.growth ?? {};
  if (task.state === "queued" && before !== "running")
    return { ...task, growth: { ...(slice && { slice }), retried: 0 } };
  if (task.state !== "failed") return task;
  const stopped: Task = { ...task, growth: { ...task.growth, is_stopped: true } };
  return activeMembers(task) === 0 ? stopped : { ...stopped, state: "running", finished_at: null };
}

/**
 * Returns a collection after changes of its members: one that is idle ends with its last member; one that has succeeded or
 * failed runs again while a member does.
 */
export function changeMembers(task: Task, changes: readonly MemberChange[], now: Date): Task {
  const { lasting_failures: known = 0, ...rest } = task;
  const counts = { ...(task.counts ?? noTasks) };
  let lasting = known;
  for (const { before, after, members, isLasting } of changes) {
    if (before !== undefined) counts[before] -= members;
    if (after !== undefined) counts[after] += members;
    if (isLasting) lasting += members;
    // How they had failed is not known here: of these, too few rather than too many are counted.
    if (before === "failed") lasting = Math.max(0, lasting - members);
  }
  const changed = { ...rest, counts, ...(lasting > 0 && { lasting_failures: lasting }) };
  return endWithMembers({ ...changed, updated_at: now.toISOString() });
}

/** Returns the collection in the state that its members mean. */
function endWithMembers(task: Task): Task {
  const isActive = activeMembers(task) > 0;
  if (isIdle(task) && !isActive) return { ...task, ...outcomeOf(task), finished_at: task.updated_at };
  if ((task.state !== "succeeded" && task.state !== "failed") || !isActive) return task;
  const error = task.growth?.is_stopped === true ? task.error : null;
  return { ...task, state: "running", error, finished_at: null };
}

function activeMembers({ counts = noTasks }: Task): number {
  return counts.queued + counts.running;
}

/** An error of reading the entries says more than that members have failed. */
function outcomeOf({
  counts = noTasks,
  error,
  growth,
  lasting_failures: lasting = 0,
}: Task): Pick<Task, "state" | "error"> {
  const { succeeded, failed, canceled } = counts;
  if (growth?.is_stopped === true) return { state: "failed", error };
  if (failed + canceled === 0) return { state: "succeeded", error: null };
  const parts = [`${failed} failed`, ...(canceled > 0 ? [`${canceled} were canceled`] : [])];
  const message = `of ${succeeded + failed + canceled} entries ${parts.join(", ")}`;
  return { state: "failed", error: { code: "entries_failed", message, retryable: canceled > 0 || lasting < failed } };
}
