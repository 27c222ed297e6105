import type { Task } from "../../task.ts";
import type { Idempotency } from "../store.ts";
import type { Sql } from "./database.ts";

/** A task that is to be stored. */
export interface TaskInsert {
  id: string;
  state: Task["state"];
  host: string;
  document: string;
  /** Number of its job; a task that is not queued has none. */
  job: string | null;
  idempotency: Idempotency | undefined;
}

/** What stands already of what arrives. */
export interface ExistingRows {
  /** The uses of keys that have not ended, by key. */
  uses: ReadonlyMap<string, { fingerprint: string; answer: string }>;
  /** Ids that are taken. */
  ids: ReadonlySet<string>;
  /** Tasks that are queued. */
  queued: number;
}

export async function readExisting(
  sql: Sql,
  arrivals: readonly TaskInsert[],
  now: Date,
): Promise<ExistingRows> {
  const keys = arrivals.flatMap(({ idempotency }) => (idempotency ? [idempotency.key] : []));
  const rows = await sql.query<KnownRow>(
    `SELECT queued AS number, NULL AS id, NULL AS key, NULL AS fingerprint, NULL AS answer
     FROM unreel.counters
     UNION ALL SELECT NULL, id, NULL, NULL, NULL FROM unreel.tasks WHERE id = ANY($1)
     UNION ALL SELECT NULL, NULL, key, fingerprint, answer FROM unreel.idempotency_keys
     WHERE key = ANY($2) AND ends_at > $3`,
    [arrivals.map(({ id }) => id), keys, now],
  );
  return {
    uses: new Map(rows.flatMap(({ key, ...use }) => (key === null ? [] : [[key, use]]))),
    ids: new Set(rows.flatMap(({ id }) => id ?? [])),
    queued: Number(rows.find(({ number }) => number !== null)?.number),
  };
}

interface KnownRow {
  number: string | null;
  id: string | null;
  key: string | null;
  fingerprint: string;
  answer: string;
}

/** What came of a write of arrivals. */
export interface Stored {
  /** `seq` of the first; the others follow. */
  firstSeq: number;
  /** Number of the newest event. */
  number: number;
  queued: number;
  /** Whether any id or key was taken: then the write must be undone. */
  hasConflict: boolean;
}

/**
 * Writes tasks with their events and keys. The counters are taken first here, and all else under them:
 * nothing that is written has been touched by another transaction before.
 */
export async function insertTasks(
  sql: Sql,
  arrivals: readonly TaskInsert[],
  now: Date,
  keysEndAt: Date,
): Promise<Stored> {
  const withKeys = arrivals.flatMap(({ document, idempotency }) =>
    idempotency ? [{ ...idempotency, document }] : [],
  );
  const [row] = await sql.query<StoredRow>(statement, [
    arrivals.map(({ id }) => id),
    arrivals.map(({ state }) => state),
    arrivals.map(({ host }) => host),
    arrivals.map(({ document }) => document),
    arrivals.map(({ job }) => job),
    arrivals.length,
    arrivals.filter(({ state }) => state === "queued").length,
    withKeys.map(({ key }) => key),
    withKeys.map(({ fingerprint }) => fingerprint),
    withKeys.map(({ document }) => document),
    now,
    keysEndAt,
  ]);
  if (row === undefined) throw new Error("unreel.counters must have one row, and has none");
  return {
    firstSeq: Number(row.seq) + 1,
    number: Number(row.events) + arrivals.length,
    queued: Number(row.queued),
    hasConflict: Number(row.tasks) < arrivals.length || Number(row.keys) < withKeys.length,
  };
}

type StoredRow = Record<"seq" | "events" | "queued" | "tasks" | "keys", string>;

const statement = `
  WITH arrivals AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::uuid[])
      WITH ORDINALITY AS arrival (id, state, host, document, job, place)
  ), counted AS (
    UPDATE unreel.counters SET seq = seq + $6, events = events + $6, queued = queued + $7
    RETURNING seq - $6 AS seq, events - $6 AS events, queued
  ), stored AS (
    INSERT INTO unreel.tasks (seq, id, state, host, document, deaths, job)
    SELECT seq + place, id, state, host, document, 0, job FROM counted, arrivals
    ON CONFLICT (id) DO NOTHING RETURNING 1
  ), kept AS (
    INSERT INTO unreel.idempotency_keys AS known (key, fingerprint, answer, ends_at)
    SELECT key, fingerprint, answer, $12 FROM counted,
      unnest($8::text[], $9::text[], $10::text[]) AS use (key, fingerprint, answer)
    ON CONFLICT (key) DO UPDATE
    SET fingerprint = excluded.fingerprint, answer = excluded.answer, ends_at = excluded.ends_at
    WHERE known.ends_at <= $11 RETURNING 1
  ), told AS (
    INSERT INTO unreel.task_events (number, type, task_id, json)
    SELECT events + place, 'task', id, document FROM counted, arrivals
  )
  SELECT seq, events, queued, (SELECT count(*) FROM stored) AS tasks,
    (SELECT count(*) FROM kept) AS keys, pg_notify('unreel_events', (events + $6)::text)
  FROM counted`;
