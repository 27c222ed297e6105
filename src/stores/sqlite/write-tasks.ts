import { randomUUID } from "node:crypto";
import type { TaskChange } from "../../feed/task-changes.ts";
import { changeEvent } from "../../feed/task-events.ts";
import type { State, Task } from "../../model/task.ts";
import type { Clock } from "../clock.ts";
import { copyTask, type DamageReport, newAnswer, parseTask, readAnswer, reusedAnswer } from "../documents.ts";
import { createMembers, type Members } from "./members.ts";
import { atOnce, type ClaimState, heldUntil, never } from "./statements.ts";
import type { Tables } from "./tables.ts";
import type { Changed, Transactions } from "./transactions.ts";
import { assertQueueNotFull, delayOf, ofOwner } from "../rules.ts";
import type { Claim, ClaimQuery, TaskWrites, UpdateOptions } from "../store.ts";
import type { Idempotency, Reused } from "../store-types.ts";
import { claimDocument, updateDocument } from "../task-writes.ts";

interface TaskWritesDeps extends Pick<Transactions, "write" | "change">, Clock {
  damage: DamageReport;
  maxQueued: number;
}

/** What the jobs work with. */
interface JobDeps extends Omit<TaskWritesDeps, "write" | "change"> {
  tables: Tables;
  members: Members;
}

/** Creates the methods that write tasks. */
export function createTaskWrites(tables: Tables, { write, change, ...given }: TaskWritesDeps): TaskWrites {
  const members = createMembers(tables, given);
  const deps = { ...given, tables, members };
  return {
    create: async (task, idempotency) => (await change(createJob(task, idempotency, false, deps), task.owner)).task,
    reuse: async (task, idempotency) => change(createJob(task, idempotency, true, deps), task.owner),
    async grow(id, growing) {
      const copy = structuredClone(growing);
      return change(() => members.grow(id, copy));
    },
    retryMembers: (id, lease) => change(() => tables.tasks.inBulk(() => members.retry(id, lease))),
    async update(id, taskChange, options = {}) {
      const copy = structuredClone({ taskChange, options });
      return change(() => updateTask(id, copy.taskChange, copy.options, deps));
    },
    delete: (id) =>
      change(() => {
        const row = tables.require(id);
        return { result: deps.damage.parse(row), events: tables.tasks.inBulk(() => members.remove(row)) };
      }),
    async claim(query) {
      const copy = structuredClone(query);
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

/** Returns the job that stores a task, unless an earlier one is the answer. */
function createJob(
  given: Task,
  idempotency: Idempotency | undefined,
  isReusing: boolean,
  { tables, maxQueued, steadyMs }: JobDeps,
): () => Changed<Reused> {
  const task = copyTask(given);
  const document = JSON.stringify(task);
  const key = ofOwner(task, idempotency);
  return () => {
    const nowMs = steadyMs();
    const earlier = key && tables.recallKey(key, nowMs);
    if (earlier !== undefined) return { result: readAnswer(task, earlier) };
    const found = isReusing ? tables.findReusable(task) : undefined;
    const reused = found && reusedAnswer(found.document);
    if (found === undefined) {
      assertQueueNotFull(tables.tasks.counts.queued, maxQueued);
      tables.insert(task, document);
    }
    if (key !== undefined) tables.keepKey(key, reused ?? newAnswer(task), nowMs);
    if (reused !== undefined) return { result: readAnswer(task, reused) };
    return { result: { task, isNew: true }, events: [changeEvent(task, document)] };
  };
}

function updateTask(
  id: string,
  change: TaskChange,
  { maxStoredBytes, ...given }: UpdateOptions,
  { tables, members, ...clock }: JobDeps,
): Changed<Task> {
  const { state } = change;
  const row = tables.require(id);
  const written = updateDocument(row, change, given, clock.now());
  const { task, stored, event } = written;
  tables.write(row, written, state && claimabilityAfter(state, given.runAfter, clock), maxStoredBytes);
  if (task.kind !== "collection" || state !== "canceled") {
    return { result: task, events: [event, ...members.follow(row, { before: row.state, after: stored.state })] };
  }
  const canceled = tables.tasks.inBulk(() => members.cancel(row));
  return { result: parseTask(tables.require(id)), events: [event, ...canceled] };
}

function claimabilityAfter(state: State, runAfter: Date | undefined, { now, steadyMs }: Clock): ClaimState {
  if (state !== "queued") return never;
  return runAfter === undefined ? atOnce : heldUntil(steadyMs() + delayOf(runAfter, now()), null);
}

/** Takes rows that are damaged out of the queue. */
function claimTask(
  { leaseMs, exceptHosts = [], exceptOwners = [] }: ClaimQuery,
  { tables, members, damage, now, steadyMs }: JobDeps,
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
    const events = [event, ...members.follow(row, { before: row.state, after: stored.state })];
    return { result: { task, lease, stalledCount, bytesLeft: tables.owners.bytesLeft(row.owner) }, events };
  }
}
