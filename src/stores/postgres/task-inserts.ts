import type { KeyLimits } from "../../model/access-key.ts";
import type { Task } from "../../model/task.ts";
import type { OwnerUse } from "../quotas.ts";
import type { Idempotency } from "../store.ts";
import type { Sql } from "./database.ts";

/** A task to be stored. */
export interface TaskInsert {
  id: string;
  state: Task["state"];
  owner: string | null;
  host: string;
  document: string;
  /** Size of its file. */
  bytes: number;
  /** When that has finished. */
  finishedAt: string | null;
  /** Id of its job; null if the task is not queued. */
  job: string | null;
  idempotency: Idempotency | undefined;
}

/** The stored rows that matter to inserts. */
export interface ExistingRows {
  /** Uses of the keys in the last 24 hours, by key. */
  uses: ReadonlyMap<string, { fingerprint: string; answer: string }>;
  /** Ids that exist. */
  ids: ReadonlySet<string>;
  /** Number of queued tasks. */
  queued: number;
  /** Of the owners with a key, by name. */
  quotas: ReadonlyMap<string, Quota>;
}

export interface Quota {
  limits: KeyLimits;
  use: OwnerUse;
}

export async function readExisting(
  sql: Sql,
  inserts: readonly TaskInsert[],
  now: Date,
): Promise<ExistingRows> {
  const keys = inserts.flatMap(({ idempotency }) => (idempotency ? [idempotency.key] : []));
  const rows = await sql.query<ExistingRow>(
    `SELECT queued AS number, NULL AS id, NULL AS key, NULL AS fingerprint, NULL AS answer
     FROM unreel.counters
     UNION ALL SELECT NULL, id, NULL, NULL, NULL FROM unreel.tasks WHERE id = ANY($1)
     UNION ALL SELECT NULL, NULL, key, fingerprint, answer FROM unreel.idempotency_keys
     WHERE key = ANY($2) AND ends_at > $3`,
    [inserts.map(({ id }) => id), keys, now],
  );
  return {
    quotas: await readQuotas(sql, inserts),
    uses: new Map(rows.flatMap(({ key, ...use }) => (key === null ? [] : [[key, use]]))),
    ids: new Set(rows.flatMap(({ id }) => id ?? [])),
    queued: Number(rows.find(({ number }) => number !== null)?.number),
  };
}

async function readQuotas(sql: Sql, inserts: readonly TaskInsert[]): Promise<Map<string, Quota>> {
  const owners = new Set(inserts.flatMap(({ owner }) => owner ?? []));
  if (owners.size === 0) return new Map();
  const rows = await sql.query<QuotaRow>(
    `SELECT name, document::json -> 'limits' AS limits, queued, running, bytes
     FROM unreel.keys LEFT JOIN unreel.owners ON owner = name WHERE name = ANY($1)`,
    [[...owners]],
  );
  return new Map(
    rows.map(({ name, limits, queued, running, bytes }) => {
      const use = { queued: Number(queued), running: Number(running), bytes: Number(bytes) };
      return [name, { limits, use }];
    }),
  );
}

interface QuotaRow extends Record<keyof OwnerUse, string | null> {
  name: string;
  limits: KeyLimits;
}

interface ExistingRow {
  number: string | null;
  id: string | null;
  key: string | null;
  fingerprint: string;
  answer: string;
}

export interface Inserted {
  /** `seq` of the first task; the others follow. */
  firstSeq: number;
  /** Number of the newest event. */
  number: number;
  queued: number;
  /** Whether an id or a key exists, or a quota is exceeded: then the caller must roll back. */
  hasConflict: boolean;
}

/**
 * Writes tasks with their events and keys, as part of a transaction. Here the counters come first and serve
 * as the lock: an insert touches no row that another transaction could have locked before.
 */
export async function insertTasks(
  sql: Sql,
  inserts: readonly TaskInsert[],
  now: Date,
  keysEndAt: Date,
): Promise<Inserted> {
  const withKeys = inserts.flatMap(({ document, idempotency }) =>
    idempotency ? [{ ...idempotency, document }] : [],
  );
  const [row] = await sql.query<InsertedRow>(statement, [
    inserts.map(({ id }) => id),
    inserts.map(({ state }) => state),
    inserts.map(({ host }) => host),
    inserts.map(({ document }) => document),
    inserts.map(({ job }) => job),
    inserts.length,
    inserts.filter(({ state }) => state === "queued").length,
    withKeys.map(({ key }) => key),
    withKeys.map(({ fingerprint }) => fingerprint),
    withKeys.map(({ document }) => document),
    now,
    keysEndAt,
    inserts.map(({ owner }) => owner),
    inserts.map(({ bytes }) => bytes),
    inserts.map(({ finishedAt }) => finishedAt),
  ]);
  if (row === undefined) throw new Error("unreel.counters must have one row, and has none");
  return {
    firstSeq: Number(row.seq) + 1,
    number: Number(row.events) + inserts.length,
    queued: Number(row.queued),
    hasConflict:
      Number(row.tasks) < inserts.length ||
      Number(row.keys) < withKeys.length ||
      row.exceeded !== "0",
  };
}

type InsertedRow = Record<"seq" | "events" | "queued" | "tasks" | "keys" | "exceeded", string>;

const statement = `
  WITH inserts AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::uuid[], $13::text[],
      $14::bigint[], $15::text[]) WITH ORDINALITY
      AS task (id, state, host, document, job, owner, bytes, finished_at, ordinal)
  ), counted AS (
    UPDATE unreel.counters SET seq = seq + $6, events = events + $6, queued = queued + $7,
      counted_events = counted_events + $6, (running, succeeded, failed, canceled) = (
        SELECT running + count(*) FILTER (WHERE state = 'running'),
          succeeded + count(*) FILTER (WHERE state = 'succeeded'),
          failed + count(*) FILTER (WHERE state = 'failed'),
          canceled + count(*) FILTER (WHERE state = 'canceled')
        FROM inserts
      )
    RETURNING seq - $6 AS seq, events - $6 AS events, queued
  ), inserted AS (
    INSERT INTO unreel.tasks (seq, id, state, host, document, deaths, job, owner, bytes, finished_at)
    SELECT seq + ordinal, id, state, host, document, 0, job, owner, bytes, finished_at
    FROM counted, inserts
    ON CONFLICT (id) DO NOTHING RETURNING 1
  ), kept AS (
    INSERT INTO unreel.idempotency_keys AS existing (key, fingerprint, answer, ends_at)
    SELECT key, fingerprint, answer, $12 FROM counted,
      unnest($8::text[], $9::text[], $10::text[]) AS use (key, fingerprint, answer)
    ON CONFLICT (key) DO UPDATE
    SET fingerprint = excluded.fingerprint, answer = excluded.answer, ends_at = excluded.ends_at
    WHERE existing.ends_at <= $11 RETURNING 1
  ), owned AS (
    INSERT INTO unreel.owners AS known (owner, queued, running, bytes)
    SELECT coalesce(owner, ''), count(*) FILTER (WHERE state = 'queued'),
      count(*) FILTER (WHERE state = 'running'), sum(bytes)
    FROM counted, inserts GROUP BY coalesce(owner, '')
    ON CONFLICT (owner) DO UPDATE
    SET queued = known.queued + excluded.queued, running = known.running + excluded.running,
      bytes = known.bytes + excluded.bytes
    RETURNING owner, queued, bytes
  ), exceeded AS (
    SELECT 1 FROM owned JOIN unreel.keys ON name = owner,
      json_to_record(keys.document::json -> 'limits') AS most (max_queued bigint, max_bytes bigint)
    WHERE queued > max_queued OR bytes >= max_bytes
  ), published AS (
    INSERT INTO unreel.task_events (number, type, task_id, json, owner)
    SELECT events + ordinal, 'task', id, document, owner FROM counted, inserts
  )
  SELECT seq, events, queued, (SELECT count(*) FROM inserted) AS tasks,
    (SELECT count(*) FROM kept) AS keys, (SELECT count(*) FROM exceeded) AS exceeded,
    pg_notify('unreel_events', (events + $6)::text)
  FROM counted`;
