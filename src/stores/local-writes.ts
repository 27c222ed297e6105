import { randomUUID } from "node:crypto";
import type { TaskChange } from "../feed/task-changes.ts";
import { changeEvent, type TaskEvent } from "../feed/task-events.ts";
import type { State, Task } from "../model/task.ts";
import type { Clock } from "./clock.ts";
import { copyTask, type DamageReport, newAnswer, parseTask, readAnswer, reusedAnswer } from "./documents.ts";
import {
  atOnce,
  type Claimability,
  createLocalMembers,
  type LocalMembers,
  type LocalRow,
  type LocalTables,
  never,
} from "./local-members.ts";
import { assertQueueNotFull, delayOf, ofOwner } from "./rules.ts";
import type { Claim, ClaimQuery, TaskWrites, UpdateOptions } from "./store.ts";
import type { Idempotency, Reused } from "./store-types.ts";
import { claimDocument, updateDocument } from "./task-writes.ts";

/** What a job returns, and the changes that it made. */
export interface Changed<T> {
  result: T;
  events?: readonly TaskEvent[];
}

/** How jobs run that write: maybe later than they are given, and maybe twice. */
export interface JobRunner {
  /** Runs a job in a transaction. */
  write<T>(job: () => T): Promise<T>;
  /** Does the same and publishes the changes, in the order of the transactions. Owners take turns: of each, the jobs run in their order. */
  change<T>(job: () => Changed<T>, owner?: string): Promise<T>;
}

interface LocalWritesDeps extends JobRunner, Clock {
  damage: DamageReport;
  maxQueued: number;
}

/** What the jobs work with. */
interface JobDeps<Row extends LocalRow> extends Omit<LocalWritesDeps, keyof JobRunner> {
  tables: LocalTables<Row>;
  members: LocalMembers<Row>;
}

/** Creates the methods that write tasks, of a store that one process has to itself. */
export function createLocalWrites<Row extends LocalRow>(
  tables: LocalTables<Row>,
  { write, change, ...given }: LocalWritesDeps,
): TaskWrites {
  const members = createLocalMembers(tables, given);
  const deps = { ...given, tables, members };
  return {
    create: async (task, idempotency) => (await change(createJob(task, idempotency, false, deps), task.owner)).task,
    reuse: async (task, idempotency) => change(createJob(task, idempotency, true, deps), task.owner),
    async grow(id, growing) {
      const copy = structuredClone(growing);
      return change(() => members.grow(id, copy));
    },
    retryMembers: (id, lease) => change(() => tables.inBulk(() => members.retry(id, lease))),
    async update(id, taskChange, options = {}) {
      const copy = structuredClone({ taskChange, options });
      return change(() => updateTask(id, copy.taskChange, copy.options, deps));
    },
    delete: (id) =>
      change(() => {
        const row = tables.require(id);
        return { result: deps.damage.parse(row), events: tables.inBulk(() => members.remove(row)) };
      }),
    async claim(query) {
      const copy = structuredClone(query);
      return change(() => claimTask(copy, deps));
    },
    heartbeat: (id, lease, leaseMs) =>
      write(() => {
        const row = tables.byId(id);
        if (row?.lease !== lease) return false;
        tables.setClaimableAt(row, deps.steadyMs() + leaseMs);
        return true;
      }),
  };
}

/** Returns the job that stores a task, unless an earlier one is the answer. */
function createJob<Row extends LocalRow>(
  given: Task,
  idempotency: Idempotency | undefined,
  isReusing: boolean,
  { tables, maxQueued, steadyMs }: JobDeps<Row>,
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
      assertQueueNotFull(tables.queued(), maxQueued);
      tables.insert(task, document);
    }
    if (key !== undefined) tables.keepKey(key, reused ?? newAnswer(task), nowMs);
    if (reused !== undefined) return { result: readAnswer(task, reused) };
    return { result: { task, isNew: true }, events: [changeEvent(task, document)] };
  };
}

function updateTask<Row extends LocalRow>(
  id: string,
  change: TaskChange,
  { maxStoredBytes, ...given }: UpdateOptions,
  { tables, members, ...clock }: JobDeps<Row>,
): Changed<Task> {
  const { state } = change;
  const row = tables.require(id);
  const written = updateDocument(row, change, given, clock.now());
  const { task, stored, event } = written;
  tables.write(row, written, state && claimabilityAfter(state, given.runAfter, clock), maxStoredBytes);
  if (task.kind !== "collection" || state !== "canceled") {
    return { result: task, events: [event, ...members.follow(row, { before: row.state, after: stored.state })] };
  }
  const canceled = tables.inBulk(() => members.cancel(row));
  return { result: parseTask(tables.require(id)), events: [event, ...canceled] };
}

function claimabilityAfter(state: State, runAfter: Date | undefined, { now, steadyMs }: Clock): Claimability {
  if (state !== "queued") return never;
  return runAfter === undefined ? atOnce : { lease: null, claimableAtMs: steadyMs() + delayOf(runAfter, now()) };
}

/** Takes rows that are damaged out of the queue. */
function claimTask<Row extends LocalRow>(
  { leaseMs, exceptHosts = [] }: ClaimQuery,
  { tables, members, damage, now, steadyMs }: JobDeps<Row>,
): Changed<Claim | undefined> {
  const nowMs = steadyMs();
  for (;;) {
    const row = tables.nextInTurn(nowMs, exceptHosts);
    if (row === undefined) return { result: undefined };
    const written = damage.unlessDamaged(row, () => claimDocument(row, now()));
    if (written === undefined) {
      tables.setClaimableAt(row, never.claimableAtMs);
      continue;
    }
    const { task, stored, event } = written;
    const lease = randomUUID();
    tables.write(row, written, { lease, claimableAtMs: nowMs + leaseMs });
    tables.markClaim(row);
    const { stalledCount } = stored;
    const events = [event, ...members.follow(row, { before: row.state, after: stored.state })];
    return { result: { task, lease, stalledCount, bytesLeft: tables.bytesLeft(row) }, events };
  }
}
