import type { MemberChange } from "../feed/collection-changes.ts";
import type { TaskChange } from "../feed/task-changes.ts";
import type { State, Task } from "../model/task.ts";
import type { Growth } from "../model/collection.ts";
import type { Growing, NewMember } from "./store-types.ts";

/** The rules of collections that all stores share. */

/** Members that are queued again, canceled or removed in one step. */
export const membersAtOnce = 200;

/** Bytes of records after which such a step takes no further member: to change one of 240 kB takes 5 ms, in which nothing else is done. */
export const stepBytes = 1_000_000;

/** Returns the first members, as many as one step takes; `isCut`: not all of them. */
export function firstOfStep<T extends { bytes: number }>(members: readonly T[]): { first: T[]; isCut: boolean } {
  let bytes = 0;
  const first = members.filter((member) => {
    const isTaken = bytes < stepBytes;
    bytes += member.bytes;
    return isTaken;
  });
  return { first, isCut: first.length < members.length };
}

/**
 * Places of collections that one task may have: each change of it changes all these collections. Where a further place is added, it is not
 * reused.
 */
export const maxPlaces = 100;

/** What queues an ended task again, as a client asks for it. */
export const retryChange = { state: "queued", attempts: 0, error: null, file: null } as const satisfies TaskChange;

/** Whether a member in this state is queued again with its collection. */
export function isRetried(state: State | undefined): boolean {
  return state === "failed" || state === "canceled";
}

/** What a member was before a change, and is after it; undefined: there is no such task. */
export interface StateChange {
  before: State | undefined;
  after: State | undefined;
  /** As in `MemberChange`; default false. */
  isLasting?: boolean;
}

/** Returns the members that are not there yet: a call may be repeated whose response was lost. */
export function newMembers({ growth }: Task, { members }: Growing): NewMember[] {
  const made = growth?.slice?.made ?? 0;
  return members.filter(({ index }) => index > made);
}

/** Returns what is left to be done if only the first `added` members could be added. */
export function growthAfter({ growth }: Task, { members, growth: whole }: Growing, added: number): Growth | null {
  if (added === members.length) return whole;
  const last = members[added - 1]?.index;
  const { slice } = growth ?? {};
  return { ...growth, ...(slice && last !== undefined && { slice: { ...slice, made: last } }) };
}

/**
 * Returns what is left to be done after a step of queuing members again.
 *
 * @param ended The next members that had ended, of which those up to the index `last` were queued; undefined: none was.
 */
export function growthAfterRetry({ growth }: Task, ended: readonly unknown[], last = growth?.retried): Growth | null {
  const { slice } = growth ?? {};
  const left = { ...(slice && { slice }) };
  if (ended.length > 0 && last !== undefined) return { ...left, retried: last };
  return slice === undefined ? null : left;
}

/** Collects the changes of members by the `seq` of their collection. */
export class ChangesByCollection {
  readonly #changes = new Map<number, Map<string, MemberChange>>();

  /** @param members How often the task is a member of the collection. */
  add(collection: number, { before, after, isLasting = false }: StateChange, members: number): void {
    const own = this.#changes.getOrInsertComputed(collection, () => new Map());
    const name = `${before} ${after} ${isLasting}`;
    own.set(name, { before, after, isLasting, members: members + (own.get(name)?.members ?? 0) });
  }

  /** Returns the changes of a collection and removes them. */
  take(collection: number): MemberChange[] {
    const own = [...(this.#changes.get(collection)?.values() ?? [])];
    this.#changes.delete(collection);
    return own;
  }

  keys(): number[] {
    return [...this.#changes.keys()];
  }
}
