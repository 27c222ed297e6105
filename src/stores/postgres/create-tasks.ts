import type { Task } from "../../model/task.ts";
import { newAnswer, readAnswer, reusedAnswer } from "../documents.ts";
import { earlierDocument, ofOwner } from "../rules.ts";
import { type Idempotency, idempotencyTtlMs, type Reused } from "../store-types.ts";
import { isSameVideo } from "../video-keys.ts";
import type { Database, Sql, Transaction } from "./database.ts";
import { toStoreError } from "./database-errors.ts";
import { createAdmission, type ExistingRows, readExisting } from "./existing-rows.ts";
import type { KeyAllowance } from "../quotas.ts";
import type { JobQueue } from "./job-queue.ts";
import { lockOwner } from "./members/member-rows.ts";
import { inTurns, lockReusable, type Reusable } from "./members/reuse.ts";
import { insertTasks, toInsert } from "./task-inserts.ts";
import type { NewRow } from "./task-rows.ts";

/** Stores a task, as `TaskStore.create` or `TaskStore.reuse` says. */
export type CreateTask = (task: Task, idempotency?: Idempotency) => Promise<Reused>;

interface CreateTaskDeps {
  database: Database;
  jobs: JobQueue;
  maxQueued: number;
  allowance: KeyAllowance;
  now: () => Date;
  /** Called after a commit, with the number of the newest event and the number of events. */
  onCommit: (newest: number, count: number) => void;
}

/** A task that waits until it is stored, or found. */
interface Pending {
  task: Task;
  insert: NewRow;
  /** Its key is that of the owner alone. */
  idempotency: Idempotency | undefined;
  resolve(result: Reused): void;
  reject(error: unknown): void;
}

/** Tasks in one transaction. */
const batchSize = 64;

/**
 * Tasks that arrive during a transaction share the next one, in their order.
 *
 * @param isReusing Tasks that exist are found. Each task then waits for its owner's lock: a transaction has those of one owner, and
 * those of several owners run at the same time.
 */
export function createTaskCreator(deps: CreateTaskDeps, { isReusing }: { isReusing: boolean }): CreateTask {
  /** What waits; a list is here while its batches are settled. */
  const queues = new Map<string, Pending[]>();

  async function run(name: string, waiting: Pending[]): Promise<void> {
    queues.set(name, waiting);
    while (waiting.length > 0) await settleAll(waiting.splice(0, batchLength(waiting)), waiting);
    queues.delete(name);
  }

  async function settleAll(batch: readonly Pending[], waiting: Pending[]): Promise<void> {
    try {
      await settleBatch(batch, isReusing, deps);
    } catch (error) {
      const failure = toStoreError(error);
      const isOutage = failure !== error;
      // During an outage every further batch would wait until its own timeout.
      if (isOutage) for (const { reject } of [...batch, ...waiting.splice(0)]) reject(failure);
      else if (batch.length === 1) for (const { reject } of batch) reject(failure);
      // One task is at fault: the others succeed alone. Promises that are settled stay settled.
      else for (const pending of batch) await settleAll([pending], waiting);
    }
  }

  return (task, given) =>
    new Promise((resolve, reject) => {
      const pending = { task, insert: toInsert(task), idempotency: ofOwner(task, given), resolve, reject };
      const name = isReusing ? (task.owner ?? "") : "";
      const waiting = queues.get(name);
      if (waiting === undefined) void run(name, [pending]);
      else waiting.push(pending);
    });
}

/** Returns the length of the next batch, in which all ids and keys differ. */
function batchLength(waiting: readonly Pending[]): number {
  const seen = new Set<string>();
  const first = waiting.slice(0, batchSize);
  const end = first.findIndex(({ task: { id }, idempotency }) => {
    const names = [`id ${id}`, ...(idempotency ? [`key ${idempotency.key}`] : [])];
    const isSeen = names.some((name) => seen.has(name));
    for (const name of names) seen.add(name);
    return isSeen;
  });
  return end === -1 ? first.length : end;
}

async function settleBatch(batch: readonly Pending[], isReusing: boolean, deps: CreateTaskDeps): Promise<void> {
  const { plan, number } = await deps.database.transaction((sql) => createAndCommit(sql, batch, isReusing, deps));
  const { fresh, answers, errors } = plan;
  for (const { owner, answer } of plan.kept) deps.allowance.add(owner, answer, deps.now().getTime());
  if (fresh.length > 0) deps.onCommit(number, fresh.length);
  for (const { task, resolve } of fresh) resolve({ task, isNew: true });
  for (const [{ reject }, error] of errors) reject(error);
  for (const [{ task, resolve }, answer] of answers) resolve(readAnswer(task, answer));
}

/** Stores the tasks that are not found; `number` is that of the newest event, 0 without one. */
async function createAndCommit(
  sql: Transaction,
  batch: readonly Pending[],
  isReusing: boolean,
  { jobs, maxQueued, allowance, now }: CreateTaskDeps,
): Promise<{ plan: Plan; number: number }> {
  const at = now();
  const matches = isReusing ? await findReusable(sql, batch) : undefined;
  const plan = planBatch(batch, {
    matches,
    existing: await readExisting(sql, batch, at),
    maxQueued,
    allowance,
    nowMs: at.getTime(),
  });
  await keepAnswers(sql, plan.kept, new Date(at.getTime() + idempotencyTtlMs));
  if (plan.fresh.length === 0) return { plan, number: 0 };
  const inserts = plan.fresh.map(({ insert }) => insert);
  const { rows, number } = await insertTasks(sql, inserts);
  await jobs.add({ query: sql.queryAndCommit }, rows);
  return { plan, number };
}

/** Returns the response for each task that exists already; the tasks are locked. */
async function findReusable(sql: Sql, batch: readonly Pending[]): Promise<Map<Pending, string>> {
  await lockOwner(sql, batch[0]?.insert.owner ?? null);
  const known = await lockReusable(sql, batch);
  const matches = new Map<Pending, string>();
  const answers = new Map<Reusable, string>();
  for await (const pending of inTurns(batch)) {
    const found = known.find(({ task }) => isSameVideo(task, pending.task));
    if (found === undefined) continue;
    const answer = answers.getOrInsertComputed(found, ({ row }) => reusedAnswer(row.document));
    matches.set(pending, answer);
  }
  return matches;
}

/** What becomes of the tasks of a batch. */
interface Plan {
  /** Stored as they are. */
  fresh: Pending[];
  /** Responses for tasks that were found, and to earlier calls. */
  answers: Map<Pending, string>;
  /** What is kept under the keys of the requests. */
  kept: (Idempotency & { owner: string | undefined; answer: string })[];
  errors: Map<Pending, unknown>;
}

interface PlanDeps {
  /** The response for each task that exists already; undefined: none is looked for. */
  matches: ReadonlyMap<Pending, string> | undefined;
  existing: ExistingRows;
  maxQueued: number;
  allowance: KeyAllowance;
  nowMs: number;
}

function planBatch(batch: readonly Pending[], { matches, existing, maxQueued, allowance, nowMs }: PlanDeps): Plan {
  const admit = createAdmission(existing, maxQueued);
  const plan: Plan = { fresh: [], answers: new Map(), kept: [], errors: new Map() };
  for (const pending of batch) {
    const { task, insert, idempotency } = pending;
    const { owner } = task;
    const made = matches && plan.fresh.find((each) => isSameVideo(each.task, task));
    const answer = matches?.get(pending) ?? (made && reusedAnswer(made.insert.document));
    try {
      const earlier = idempotency && earlierDocument(existing.uses.get(idempotency.key), idempotency);
      if (earlier === undefined && idempotency) allowance.assertMayKeep(owner, nowMs);
      if (earlier !== undefined) plan.answers.set(pending, earlier);
      else if (answer !== undefined) {
        plan.answers.set(pending, answer);
        if (idempotency) plan.kept.push({ ...idempotency, owner, answer });
      } else {
        admit(insert);
        plan.fresh.push(pending);
        if (idempotency) plan.kept.push({ ...idempotency, owner, answer: newAnswer(task) });
      }
    } catch (error) {
      plan.errors.set(pending, error);
    }
  }
  return plan;
}

/** Keeps the responses under the keys of their requests. */
async function keepAnswers(sql: Sql, kept: Plan["kept"], keysEndAt: Date): Promise<void> {
  if (kept.length === 0) return;
  await sql.query(insertKeys, {
    keys: kept.map(({ key }) => key),
    fingerprints: kept.map(({ fingerprint }) => fingerprint),
    answers: kept.map(({ answer }) => answer),
    keysEndAt,
  });
}

const insertKeys = `
  INSERT INTO unreel.idempotency_keys (key, fingerprint, answer, ends_at)
  SELECT key, fingerprint, answer, :keysEndAt
  FROM unnest(:keys::text[], :fingerprints::text[], :answers::text[]) AS use (key, fingerprint, answer)
  ON CONFLICT (key) DO UPDATE
  SET fingerprint = excluded.fingerprint, answer = excluded.answer, ends_at = excluded.ends_at`;
