import { randomUUID } from "node:crypto";
import { newTask } from "../../feed/task-changes.ts";
import type { Task } from "../../model/task.ts";
import { newAnswer } from "../documents.ts";
import { newColumns } from "../task-writes.ts";
import { freeRecordBytes, queuedPerFree } from "../quotas.ts";
import { ofOwner } from "../rules.ts";
import type { Idempotency } from "../store-types.ts";
import type { Database, Sql } from "./database.ts";
import type { JobQueue } from "./job-queue.ts";
import { addedUse, insertedColumns, type NewRow, noCountersError } from "./task-rows.ts";

/** A task to be stored. */
export interface TaskInsert extends NewRow {
  idempotency: Idempotency | undefined;
  /** What is kept under the key. */
  answer: string | undefined;
}

/** Returns what is stored of a new task, with a job if it is queued. */
export function toInsert(task: Task, idempotency: Idempotency | undefined): TaskInsert {
  const key = ofOwner(task, idempotency);
  return {
    ...newColumns(task, JSON.stringify(task)),
    memberships: 0,
    job: task.state === "queued" ? randomUUID() : null,
    idempotency: key,
    answer: key && newAnswer(task),
  };
}

interface Inserted {
  rows: (TaskInsert & { seq: number })[];
  /** Number of the newest event. */
  number: number;
  queued: number;
  /** Whether an id or a key exists, or a quota is exceeded: then the caller must roll back. */
  hasConflict: boolean;
}

/**
 * Writes tasks with their events and keys, as part of a transaction. Here the counters come first and serve
 * as the lock: an insert touches no row that another transaction could have locked before.
 *
 * @param maxQueued Size of the queue, for the shares of owners with a key; default: any number.
 */
export async function insertTasks(
  sql: Sql,
  inserts: readonly TaskInsert[],
  now: Date,
  keysEndAt: Date,
  maxQueued: number | null = null,
): Promise<Inserted> {
  const withKeys = inserts.flatMap(({ answer, idempotency }) => (idempotency ? [{ ...idempotency, answer }] : []));
  const lists = Object.entries(insertedColumns).map(([name, [, of]]) => [name, inserts.map((insert) => of(insert))]);
  const [row] = await sql.query<InsertedRow>(statement, {
    ...Object.fromEntries(lists),
    count: inserts.length,
    queued: inserts.filter(({ state }) => state === "queued").length,
    ...keyValues(withKeys),
    now,
    keysEndAt,
    maxQueued,
  });
  if (row === undefined) throw noCountersError();
  const { seq, events, queued, tasks, keys, exceeded } = row;
  const hasConflict = tasks < inserts.length || keys < withKeys.length || exceeded > 0;
  const rows = inserts.map((insert, index) => ({ ...insert, seq: seq + 1 + index }));
  return { rows, number: events + inserts.length, queued, hasConflict };
}

type InsertedRow = Record<"seq" | "events" | "queued" | "tasks" | "keys" | "exceeded", number>;

/** Keeps answers under keys; of a statement with `keyValues` and `keysEndAt`. */
export const insertKeys = (after = "") => `
    INSERT INTO unreel.idempotency_keys AS existing (key, fingerprint, answer, ends_at)
    SELECT key, fingerprint, answer, :keysEndAt
    FROM ${after}unnest(:keys::text[], :fingerprints::text[], :answers::text[]) AS use (key, fingerprint, answer)
    ON CONFLICT (key) DO UPDATE
    SET fingerprint = excluded.fingerprint, answer = excluded.answer, ends_at = excluded.ends_at`;

/** Returns the parameters of `insertKeys`. */
export function keyValues(uses: readonly (Idempotency & Pick<TaskInsert, "answer">)[]) {
  return {
    keys: uses.map(({ key }) => key),
    fingerprints: uses.map(({ fingerprint }) => fingerprint),
    answers: uses.map(({ answer }) => answer),
  };
}

const columns = Object.keys(insertedColumns).join(", ");
const arrays = Object.entries(insertedColumns).map(([name, [type]]) => `:${name}::${type}[]`);

const statement = `
  WITH inserts AS (
    SELECT *, count(*) FILTER (WHERE state = 'queued') OVER (ORDER BY ordinal) AS place
    FROM unnest(${arrays.join(", ")}) WITH ORDINALITY AS task (${columns}, ordinal)
  ), counted AS (
    UPDATE unreel.counters SET seq = seq + :count, events = events + :count, queued = queued + :queued,
      counted_events = counted_events + :count, (running, succeeded, failed, canceled) = (
        SELECT running + count(*) FILTER (WHERE state = 'running'),
          succeeded + count(*) FILTER (WHERE state = 'succeeded'),
          failed + count(*) FILTER (WHERE state = 'failed'),
          canceled + count(*) FILTER (WHERE state = 'canceled')
        FROM inserts
      )
    RETURNING seq - :count AS seq, events - :count AS events, queued
  ), inserted AS (
    INSERT INTO unreel.tasks (seq, ${columns}) SELECT seq + ordinal, ${columns}
    FROM counted, inserts
    ON CONFLICT (id) DO NOTHING RETURNING 1
  ), kept AS (
    ${insertKeys("counted, ")}
    WHERE existing.ends_at <= :now RETURNING 1
  ), added AS (
    SELECT coalesce(owner, '') AS owner, max(place) AS place, count(*) FILTER (WHERE state = 'queued') AS queued,
      count(*) FILTER (WHERE state = 'running') AS running, sum(bytes) AS bytes,
      sum(greatest(octet_length(document) - ${freeRecordBytes}, 0)) AS records
    FROM inserts, (SELECT 1 FROM counted) AS locked GROUP BY coalesce(owner, '')
  ), owned AS (
    INSERT INTO unreel.owners AS known (owner, queued, running, bytes, records)
    SELECT owner, queued, running, bytes, records FROM added
    ON CONFLICT (owner) DO UPDATE SET ${addedUse}
    RETURNING owner, queued, bytes, records
  ), exceeded AS (
    SELECT 1 FROM owned JOIN added USING (owner) JOIN unreel.keys ON name = owner,
      json_to_record(keys.document::json -> 'limits') AS most (max_queued bigint, max_bytes bigint), counted
    WHERE owned.queued > least(max_queued, ${queuedPerFree} * (:maxQueued::bigint - counted.queued + :queued - place + 1)) OR owned.bytes + owned.records - added.records >= max_bytes
  ), published AS (
    INSERT INTO unreel.task_events (number, type, task_id, json, owner)
    SELECT events + ordinal, 'task', id, document, owner FROM counted, inserts
  )
  SELECT seq, events, queued, (SELECT count(*) FROM inserted) AS tasks,
    (SELECT count(*) FROM kept) AS keys, (SELECT count(*) FROM exceeded) AS exceeded,
    pg_notify('unreel_events', (events + :count)::text)
  FROM counted`;

/**
 * Stores a task of a usual length with its job and its event, and rolls back.
 *
 * @throws DatabaseError, or an error of the connection, if the database cannot take a task.
 */
export async function probe(database: Database, jobs: JobQueue): Promise<void> {
  const at = new Date();
  const insert = toInsert(newTask("https://example.com/".padEnd(200, "a"), {}, at), undefined);
  const rollback = new Error("the probe is rolled back");
  try {
    await database.transaction(async (sql) => {
      const { rows } = await insertTasks(sql, [insert], at, at);
      await jobs.add(sql, rows);
      throw rollback;
    });
  } catch (error) {
    if (error !== rollback) throw error;
  }
}
