import { randomUUID } from "node:crypto";
import { hasFailedForGood } from "../../feed/collection-changes.ts";
import type { TaskChange } from "../../feed/task-changes.ts";
import { changeEvent } from "../../feed/task-events.ts";
import type { State, Task } from "../../model/task.ts";
import type { Clock } from "../clock.ts";
import { copyTask, type DamageReport, newAnswer, parseTask, readAnswer, reusedAnswer } from "../documents.ts";
import { createFollowers, type Followers, createMembers, createMemberEnds, type MemberEnds } from "./members.ts";
import { atOnce, type ClaimState, heldUntil, never } from "./statements.ts";
import type { Tables } from "./tables.ts";
import type { Changed, Transactions } from "./transactions.ts";
import { assertQueueNotFull, delayOf, ofOwner } from "../rules.ts";
import type { KeyAllowance } from "../quotas.ts";
import type { Claim, ClaimQuery, TaskWrites, UpdateOptions } from "../store.ts";
import type { Idempotency, Reused } from "../store-types.ts";
import { claimDocument, updateDocument } from "../task-writes.ts";

interface TaskWritesDeps extends Pick<Transactions, "read" | "write" | "change">, Clock {
  damage: DamageReport;
  maxQueued: number;
  allowance: KeyAllowance;
}

interface JobDeps extends Omit<TaskWritesDeps, "read" | "write" | "change"> {
  tables: Tables;
  followers: Followers;
  ends: MemberEnds;
}

/** Creates the methods that write tasks. */
export function createTaskWrites(tables: Tables, { read, write, change, ...given }: TaskWritesDeps): TaskWrites {
  const followers = createFollowers(tables, given);
  const members = createMembers(tables, followers, given);
  const ends = createMemberEnds(tables, followers, given);
  const deps = { ...given, tables, followers, ends };
  const ownerOf = (id: string) => () => tables.ownerOf(id);
  const { endMembers, endLeft } = createMemberEnding(tables, ends, { read, change });

  async function create(wanted: Task, idempotency: Idempotency | undefined, isReusing: boolean): Promise<Reused> {
    const { owner } = wanted;
    const { task, isNew, kept } = await change(createJob(wanted, idempotency, isReusing, deps), () => owner);
    // Only now: a transaction may be repeated.
    if (kept !== undefined) deps.allowance.add(owner, kept, deps.steadyMs());
    return { task, isNew };
  }

  return {
    create: async (task, idempotency) => (await create(task, idempotency, false)).task,
    reuse: async (task, idempotency) => create(task, idempotency, true),
    async grow(id, growing) {
      const copy = structuredClone(growing);
      for (;;) {
        const { isCut, ...grown } = await change(() => members.grow(id, copy));
        if (!isCut) return grown;
      }
    },
    retryMembers: (id, lease) => change(() => tables.tasks.inBulk(() => members.retry(id, lease))),
    async update(id, taskChange, options = {}) {
      const copy = structuredClone({ taskChange, options });
      const { task, ending } = await change(() => updateTask(id, copy.taskChange, copy.options, deps), ownerOf(id));
      if (ending === undefined) return task;
      await endMembers(ending);
      const row = await read(() => tables.find(ending));
      return row === undefined ? task : parseTask(row);
    },
    async delete(id) {
      const { task, ending } = await change(() => removeTask(id, deps), ownerOf(id));
      if (ending !== undefined) await endMembers(ending);
      return task;
    },
    async claim(query) {
      const copy = structuredClone(query);
      await endLeft();
      return change(() => claimTask(copy, deps));
    },
    heartbeat: (id, lease, leaseMs) =>
      write(() => {
        const row = tables.byId(id);
        if (row?.lease !== lease) return false;
        tables.tasks.setDue(row, deps.steadyMs() + leaseMs);
        return true;
      }),
  };
}

/** Creates what ends the members of collections that are canceled or removed, a few in each transaction: others' writes take turns. */
function createMemberEnding(tables: Tables, ends: MemberEnds, { read, change }: Pick<Transactions, "read" | "change">) {
  const endNext = (collection: number) => tables.tasks.inBulk(() => ends.endNext(collection));
  const running = new Set<number>();

  async function endMembers(collection: number): Promise<void> {
    running.add(collection);
    try {
      while (!(await change(() => endNext(collection))).isWhole);
    } finally {
      running.delete(collection);
    }
  }

  return {
    endMembers,
    /** Ends what a process that died, or a full disk, has left. */
    async endLeft(): Promise<void> {
      const ending = await read(() => tables.endings.all());
      for (const collection of ending) if (!running.has(collection)) await endMembers(collection);
    },
  };
}

/** What a call gets, and what is kept for it under a key. */
interface Created extends Reused {
  kept?: string | undefined;
}

/** Returns the job that stores a task, unless an earlier one is the answer. */
function createJob(
  given: Task,
  idempotency: Idempotency | undefined,
  isReusing: boolean,
  { tables, maxQueued, steadyMs, allowance }: JobDeps,
): () => Changed<Created> {
  const task = copyTask(given);
  const document = JSON.stringify(task);
  const key = ofOwner(task, idempotency);
  return () => {
    const nowMs = steadyMs();
    const earlier = key && tables.recallKey(key, nowMs);
    if (earlier !== undefined) return { result: readAnswer(task, earlier) };
    if (key !== undefined) allowance.assertMayKeep(task.owner, nowMs);
    const found = isReusing ? tables.findReusable(task) : undefined;
    const reused = found && reusedAnswer(found.document);
    if (found === undefined) {
      assertQueueNotFull(tables.tasks.counts.queued, maxQueued);
      tables.insert(task, document);
    }
    const kept = key === undefined ? undefined : (reused ?? newAnswer(task));
    if (key !== undefined && kept !== undefined) tables.keepKey(key, kept, nowMs);
    if (reused !== undefined) return { result: { ...readAnswer(task, reused), kept } };
    return { result: { task, isNew: true, kept }, events: [changeEvent(task, document)] };
  };
}

interface EndedTask<T> {
  task: T;
  /** The `seq` of a collection not all of whose members have ended with it. */
  ending?: number | undefined;
}

function updateTask(
  id: string,
  change: TaskChange,
  { maxStoredBytes, ...given }: UpdateOptions,
  { tables, followers, ends, ...clock }: JobDeps,
): Changed<EndedTask<Task>> {
  const { state } = change;
  const row = tables.require(id);
  const written = updateDocument(row, change, given, clock.now());
  const { task, stored, event } = written;
  tables.write(row, written, state && claimabilityAfter(state, given.runAfter, clock), maxStoredBytes);
  if (task.kind !== "collection" || state !== "canceled") {
    const isLasting = hasFailedForGood(task);
    const followed = followers.follow(row, { before: row.state, after: stored.state, isLasting });
    return { result: { task }, events: [event, ...followed] };
  }
  const { result, events } = tables.tasks.inBulk(() => ends.endNext(row.seq, 0));
  const ended = parseTask(tables.require(id));
  return { result: { task: ended, ending: result.isWhole ? undefined : row.seq }, events: [event, ...events] };
}

function removeTask(id: string, { tables, ends, damage }: JobDeps): Changed<EndedTask<Task | undefined>> {
  const row = tables.require(id);
  const task = damage.parse(row);
  return tables.tasks.inBulk(() => {
    const removed = ends.remove(row);
    const { result, events } = ends.endNext(row.seq, 0);
    return { result: { task, ending: result.isWhole ? undefined : row.seq }, events: [...removed, ...events] };
  });
}

function claimabilityAfter(state: State, runAfter: Date | undefined, { now, steadyMs }: Clock): ClaimState {
  if (state !== "queued") return never;
  return runAfter === undefined ? atOnce : heldUntil(steadyMs() + delayOf(runAfter, now()), null);
}

/** Takes rows that are damaged out of the queue. */
function claimTask(
  { leaseMs, exceptHosts = [], exceptOwners = [] }: ClaimQuery,
  { tables, followers, damage, now, steadyMs }: JobDeps,
): Changed<Claim | undefined> {
  const nowMs = steadyMs();
  for (;;) {
    const row = tables.tasks.nextInTurn(nowMs, { exceptHosts, exceptOwners });
    if (row === undefined) return { result: undefined };
    const written = damage.unlessDamaged(row, () => claimDocument(row, now()));
    if (written === undefined) {
      tables.tasks.setDue(row, null);
      continue;
    }
    const { task, stored, event } = written;
    const lease = randomUUID();
    tables.write(row, written, heldUntil(nowMs + leaseMs, lease));
    tables.owners.markClaim(row.owner);
    const { stalledCount } = stored;
    const events = [event, ...followers.follow(row, { before: row.state, after: stored.state })];
    return { result: { task, lease, stalledCount, bytesLeft: tables.owners.bytesLeft(row.owner) }, events };
  }
}
