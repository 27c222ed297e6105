import { setImmediate as nextTurn } from "node:timers/promises";
import { isActive, type Task } from "../../../model/task.ts";
import { parseTask, readAnswer, reusedAnswer } from "../../documents.ts";
import { type Reused, type Idempotency, idempotencyTtlMs } from "../../store-types.ts";
import { isSameVideo, searchKeysOf } from "../../video-keys.ts";
import { type BatchInserterOptions, createBatches, type Pending } from "../batch-inserter.ts";
import type { Sql, Transaction } from "../database.ts";
import { createAdmission, earlierAnswer, type ExistingRows, readExisting, resolveExisting } from "../existing-rows.ts";
import { insertKeys, insertTasks, keyValues } from "../task-inserts.ts";
import type { TaskRow } from "../task-rows.ts";
import { lockOwner, lockRows } from "./member-rows.ts";

/** Stores a task or finds one as `TaskStore.reuse` says. */
export type ReuseTask = (task: Task, idempotency?: Idempotency) => Promise<Reused>;

/** Tasks of one owner that arrive during a transaction share the next one, as each of them waits for the owner's lock. */
export function createReuser(options: BatchInserterOptions): ReuseTask {
  return createBatches<Reused>(
    async (batch) => {
      const { plan, number } = await options.database.transaction((sql) => reuseAndCommit(sql, batch, options));
      const { fresh, answers, errors } = plan;
      if (fresh.length > 0) options.onCommit(number, fresh.length);
      for (const { task, resolve } of fresh) resolve({ task, isNew: true });
      for (const [{ reject }, error] of errors) reject(error);
      for (const [{ task, resolve }, answer] of answers) resolve(readAnswer(task, answer));
      return batch.filter((pending) => !fresh.includes(pending) && !answers.has(pending) && !errors.has(pending));
    },
    { byOwner: true },
  );
}

/** Stores the tasks that are not found; `number` is that of the newest event, 0 without one. */
async function reuseAndCommit(
  sql: Transaction,
  batch: readonly Pending<Reused>[],
  { jobs, maxQueued, now }: BatchInserterOptions,
): Promise<{ plan: Plan; number: number }> {
  const at = now();
  await lockOwner(sql, batch[0]?.insert.owner ?? null);
  const known = await lockReusable(sql, batch);
  const matches = await matchReusable(batch, known);
  // From here on other writes wait, so that what is read of the queue and the quotas stays true.
  await sql.query("SELECT FROM unreel.counters FOR UPDATE");
  const existing = await readExisting(sql, batch, at);
  const plan = planReuse(batch, { matches, existing, maxQueued });
  const keysEndAt = new Date(at.getTime() + idempotencyTtlMs);
  await keepAnswers(sql, plan.found, keysEndAt);
  if (plan.fresh.length === 0) return { plan, number: 0 };
  const inserts = plan.fresh.map(({ insert }) => insert);
  const { rows, number, hasConflict } = await insertTasks(sql, inserts, at, keysEndAt);
  if (hasConflict) throw new Error("an id or a key was used, or a quota exceeded, after all were read");
  await jobs.add({ query: sql.queryAndCommit }, rows);
  return { plan, number };
}

/** What becomes of the tasks of a batch; those that are in none of these wait until the others are stored. */
interface Plan {
  /** Stored as they are. */
  fresh: Pending<Reused>[];
  /** Responses kept under a key: for tasks that were found, and for earlier calls. */
  answers: Map<Pending<Reused>, string>;
  found: { idempotency: Idempotency | undefined; answer: string }[];
  errors: Map<Pending<Reused>, unknown>;
}

/** Returns the response for each task that exists already. */
async function matchReusable(
  batch: readonly Pending<Reused>[],
  known: readonly Reusable[],
): Promise<Map<Pending<Reused>, string>> {
  const matches = new Map<Pending<Reused>, string>();
  const answers = new Map<Reusable, string>();
  for await (const pending of inTurns(batch)) {
    const found = known.find(({ task }) => isSameVideo(task, pending.task));
    if (found === undefined) continue;
    matches.set(
      pending,
      answers.getOrInsertComputed(found, ({ row }) => reusedAnswer(row.document)),
    );
  }
  return matches;
}

interface PlanDeps {
  matches: ReadonlyMap<Pending<Reused>, string>;
  existing: ExistingRows;
  maxQueued: number;
}

function planReuse(batch: readonly Pending<Reused>[], { matches, existing, maxQueued }: PlanDeps): Plan {
  const admit = createAdmission(existing, maxQueued);
  const plan: Plan = { fresh: [], answers: new Map(), found: [], errors: new Map() };
  for (const pending of batch) {
    const { task, insert } = pending;
    const made = plan.fresh.find((each) => isSameVideo(each.task, task));
    const answer = matches.get(pending) ?? (made && reusedAnswer(made.insert.document));
    try {
      const earlier =
        answer === undefined ? resolveExisting(existing, insert, maxQueued) : earlierAnswer(existing, insert);
      if (earlier !== undefined) plan.answers.set(pending, earlier);
      else if (answer !== undefined) {
        plan.answers.set(pending, answer);
        plan.found.push({ idempotency: insert.idempotency, answer });
      } else if (admit(insert.owner)) plan.fresh.push(pending);
    } catch (error) {
      plan.errors.set(pending, error);
    }
  }
  return plan;
}

/** Keeps the responses for tasks that were found, under the keys of their requests. */
async function keepAnswers(sql: Sql, found: Plan["found"], keysEndAt: Date): Promise<void> {
  const uses = found.flatMap(({ idempotency, answer }) => (idempotency ? { ...idempotency, answer } : []));
  if (uses.length === 0) return;
  await sql.query(insertKeys(), { ...keyValues(uses), keysEndAt });
}

/** A task that is reused, locked. */
export interface Reusable {
  row: TaskRow;
  task: Task;
}

/**
 * Returns the tasks that are reused: the newest ones that these would only repeat, and that have fewer places of collections; default:
 * any number.
 */
export async function lockReusable(
  sql: Sql,
  wanted: readonly { task: Task }[],
  places = Infinity,
): Promise<Reusable[]> {
  const searched = wanted.map(({ task }) => searchKeysOf(task));
  const keys = [...new Set(searched.flatMap(({ video }) => video))];
  const siteKeys = [...new Set(searched.flatMap(({ site }) => site))];
  const candidates = await sql.query<Pick<TaskRow, "seq" | "id" | "document" | "memberships">>(selectReusable, {
    keys,
    siteKeys,
  });
  const found = candidates.filter(({ memberships }) => memberships < places);
  const seqs: number[] = [];
  let others = wanted;
  for await (const { seq, id, document } of inTurns(found)) {
    if (others.length === 0) break;
    const known = tryParse({ id, document });
    const left = others.filter(({ task }) => known === undefined || !isSameVideo(known, task));
    if (left.length < others.length) seqs.push(seq);
    others = left;
  }
  const rows = await lockRows(sql, seqs);
  const reusable: Reusable[] = [];
  for await (const row of inTurns(rows.filter(({ state, bytes }) => isActive(state) || bytes > 0))) {
    reusable.push({ row, task: parseTask(row) });
  }
  return reusable;
}

/** Returns undefined if the record is damaged: then it is not reused. */
export function tryParse(row: Pick<TaskRow, "id" | "document">): Task | undefined {
  try {
    return parseTask(row);
  } catch {
    return undefined;
  }
}

/** The newest ones of each key: several, as keys are hashes, and an owner may have thousands for one page. */
const reusable = (column: string, keys = ":keys") => `SELECT seq FROM (
  SELECT seq, row_number() OVER (PARTITION BY ${column} ORDER BY seq DESC) AS place FROM unreel.tasks
  WHERE ${column} = ANY(${keys}::bigint[]) AND (state IN ('queued', 'running') OR bytes > 0)
) AS found WHERE place <= 16`;
const selectReusable = `SELECT seq, id, document, memberships FROM unreel.tasks WHERE seq IN (
  ${reusable("video")} UNION ${reusable("page_video")} UNION ${reusable("site_video", ":siteKeys")}
) ORDER BY seq DESC`;

/** Milliseconds: to parse a long record takes two. */
const maxMs = 5;

/** Yields the items; once what is done with them has taken 5 ms, other work of the process has its turn before the next one. */
export async function* inTurns<T>(items: readonly T[]): AsyncGenerator<T, void, undefined> {
  let endMs = performance.now() + maxMs;
  for (const item of items) {
    if (performance.now() >= endMs) {
      await nextTurn();
      endMs = performance.now() + maxMs;
    }
    yield item;
  }
}
