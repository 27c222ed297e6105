import type { KeyLimits } from "../../model/access-key.ts";
import { addUse, assertMayQueue, noUse, type OwnerUse, type Quota, freeInQueue } from "../quotas.ts";
import { assertQueueNotFull, duplicateTaskError, earlierDocument } from "../rules.ts";
import type { Sql } from "./database.ts";
import type { TaskInsert } from "./task-inserts.ts";

/** The stored rows that matter to inserts. */
export interface ExistingRows {
  /** Uses of the keys in the last 24 hours, by key. */
  uses: ReadonlyMap<string, { fingerprint: string; document: string }>;
  /** Ids that exist. */
  ids: ReadonlySet<string>;
  /** Number of queued tasks. */
  queued: number;
  /** Of the owners with a key, by name. */
  quotas: ReadonlyMap<string, Quota>;
}

/** Reads what is stored already of these inserts, and what limits them. */
export async function readExisting(
  sql: Sql,
  batch: readonly { insert: TaskInsert }[],
  now: Date,
): Promise<ExistingRows> {
  const inserts = batch.map(({ insert }) => insert);
  const ids = inserts.map(({ id }) => id);
  const keys = inserts.flatMap(({ idempotency }) => (idempotency ? [idempotency.key] : []));
  const rows = await sql.query<ExistingRow>(selectExisting, { ids, keys, now });
  return {
    quotas: await readQuotas(sql, inserts),
    uses: new Map(rows.flatMap(({ key, ...use }) => (key === null ? [] : [[key, use]]))),
    ids: new Set(rows.flatMap(({ id }) => id ?? [])),
    queued: rows.find(({ queued }) => queued !== null)?.queued ?? 0,
  };
}

const selectExisting = `
  SELECT queued, NULL AS id, NULL AS key, NULL AS fingerprint, NULL AS document FROM unreel.counters
  UNION ALL SELECT NULL, id, NULL, NULL, NULL FROM unreel.tasks WHERE id = ANY(:ids)
  UNION ALL SELECT NULL, NULL, key, fingerprint, answer FROM unreel.idempotency_keys
  WHERE key = ANY(:keys) AND ends_at > :now`;

interface ExistingRow {
  queued: number | null;
  id: string | null;
  key: string | null;
  fingerprint: string;
  document: string;
}

async function readQuotas(sql: Sql, inserts: readonly TaskInsert[]): Promise<Map<string, Quota>> {
  const owners = [...new Set(inserts.flatMap(({ owner }) => owner ?? []))];
  if (owners.length === 0) return new Map();
  const rows = await sql.query<OwnerUse & { name: string; limits: KeyLimits }>(
    `SELECT name, document::json -> 'limits' AS limits, coalesce(queued, 0) AS queued,
       coalesce(running, 0) AS running, coalesce(bytes, 0) AS bytes, coalesce(records, 0) AS records
     FROM unreel.keys LEFT JOIN unreel.owners ON owner = name WHERE name = ANY(:owners)`,
    { owners },
  );
  return new Map(rows.map(({ name, limits, ...use }) => [name, { limits, use }]));
}

/**
 * Returns the document that was stored earlier under the task's key; undefined if the task can be stored.
 *
 * @throws ServiceError `idempotency_mismatch`, `conflict` if the id exists, `unavailable` if the queue is full,
 * `quota_exceeded` if the owner may not queue it.
 */
export function resolveExisting(
  { uses, ids, queued, quotas }: ExistingRows,
  { id, owner, idempotency }: TaskInsert,
  maxQueued: number,
): string | undefined {
  const earlier = earlierAnswer({ uses }, { idempotency });
  if (earlier !== undefined) return earlier;
  if (ids.has(id)) throw duplicateTaskError(id);
  assertQueueNotFull(queued, maxQueued);
  const quota = quotas.get(owner ?? "");
  if (quota !== undefined) assertMayQueue(quota, maxQueued - queued);
  return undefined;
}

/**
 * Returns what was kept under the task's key.
 *
 * @throws ServiceError `idempotency_mismatch`
 */
export function earlierAnswer(
  { uses }: Pick<ExistingRows, "uses">,
  { idempotency }: Pick<TaskInsert, "idempotency">,
): string | undefined {
  return idempotency && earlierDocument(uses.get(idempotency.key), idempotency);
}

/** Returns a function that says whether one more task of an owner may be queued, and then counts it. */
export function createAdmission({ queued, quotas }: ExistingRows, maxQueued: number) {
  let free = maxQueued - queued;
  const now = new Map(quotas);
  return (owner: string | null): boolean => {
    const quota = now.get(owner ?? "");
    const left = quota === undefined ? free : freeInQueue(quota, free);
    free -= 1;
    if (quota !== undefined) now.set(owner ?? "", { ...quota, use: addUse(quota.use, { ...noUse, queued: 1 }) });
    return left > 0;
  };
}
