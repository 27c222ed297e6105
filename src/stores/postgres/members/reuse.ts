import type { Task } from "../../../model/task.ts";
import { readAnswer, reusedAnswer } from "../../documents.ts";
import { type Idempotency, idempotencyTtlMs } from "../../idempotency.ts";
import { type Reused } from "../../growth.ts";
import type { Sql, Transaction } from "../database.ts";
import { earlierAnswer, readExisting, resolveExisting } from "../existing-rows.ts";
import type { JobQueue } from "../job-queue.ts";
import { insertTasks, toInsert } from "../task-inserts.ts";
import { lockReusable } from "./grow.ts";
import { lockOwner } from "./member-rows.ts";

interface ReuseDeps {
  jobs: JobQueue;
  maxQueued: number;
  steadyNow: () => Date;
}

/** Stores a task or finds one as `TaskStore.reuse` says. */
export async function reuseAndCommit(
  { jobs, maxQueued, steadyNow }: ReuseDeps,
  sql: Transaction,
  task: Task,
  idempotency: Idempotency | undefined,
): Promise<Reused & { number: number; count: number }> {
  const at = steadyNow();
  const insert = toInsert(task, idempotency);
  await lockOwner(sql, insert.owner);
  const [found] = await lockReusable(sql, [task]);
  // From here on other writes wait, so that what is read of the queue and the quotas stays true.
  await sql.query("SELECT FROM unreel.counters FOR UPDATE");
  const existing = await readExisting(sql, [insert], at);
  const earlier = found === undefined ? resolveExisting(existing, insert, maxQueued) : earlierAnswer(existing, insert);
  if (earlier !== undefined) return { ...readAnswer(task.id, earlier), number: 0, count: 0 };
  const keysEndAt = new Date(at.getTime() + idempotencyTtlMs);
  if (found !== undefined) {
    const answer = reusedAnswer(found.document);
    if (insert.idempotency !== undefined) await keepKey(sql, { ...insert.idempotency, answer, keysEndAt });
    return { ...readAnswer(found.id, answer), number: 0, count: 0 };
  }
  const { firstSeq: seq, number, hasConflict } = await insertTasks(sql, [insert], at, keysEndAt);
  if (hasConflict) throw new Error("the id or the key was used, or a quota exceeded, after all were read");
  await jobs.add({ query: sql.queryAndCommit }, insert.job === null ? [] : [{ ...insert, job: insert.job, seq }]);
  return { task, isNew: true, number, count: 1 };
}

async function keepKey(
  sql: Sql,
  given: { key: string; fingerprint: string; answer: string; keysEndAt: Date },
): Promise<void> {
  await sql.query(
    `INSERT INTO unreel.idempotency_keys (key, fingerprint, answer, ends_at)
     VALUES (:key, :fingerprint, :answer, :keysEndAt)
     ON CONFLICT (key) DO UPDATE
     SET fingerprint = excluded.fingerprint, answer = excluded.answer, ends_at = excluded.ends_at`,
    given,
  );
}
