import type { KeyLimits } from "../../model/access-key.ts";
import { addUse, assertMayQueue, type OwnerUse, type Quota, freeInQueue, useChange } from "../quotas.ts";
import { assertQueueNotFull, duplicateTaskError } from "../rules.ts";
import type { Idempotency } from "../store-types.ts";
import type { Sql } from "./database.ts";
import type { NewRow } from "./task-rows.ts";

/** The stored rows that matter to inserts. */
export interface ExistingRows {
  /** Uses of the keys in the last 24 hours, by key. */
  uses: ReadonlyMap<string, { fingerprint: string; document: string }>;
  ids: ReadonlySet<string>;
  queued: number;
  /** Of the owners with a key, by name. */
  quotas: ReadonlyMap<string, Quota>;
}

/** Reads what is stored already of these tasks, and what limits them. From then on other writes wait for the commit, so that it stays true. */
export async function readExisting(
  sql: Sql,
  batch: readonly { insert: Pick<NewRow, "id" | "owner">; idempotency: Idempotency | undefined }[],
  now: Date,
): Promise<ExistingRows> {
  const ids = batch.map(({ insert }) => insert.id);
  const keys = batch.flatMap(({ idempotency }) => idempotency?.key ?? []);
  const [queued, rows, quotas] = await Promise.all([
    lockQueue(sql),
    sql.query<ExistingRow>(selectExisting, { ids, keys, now }),
    readQuotas(
      sql,
      batch.map(({ insert }) => insert.owner),
    ),
  ]);
  return {
    queued,
    quotas,
    uses: new Map(rows.flatMap(({ key, ...use }) => (key === null ? [] : [[key, use]]))),
    ids: new Set(rows.flatMap(({ id }) => id ?? [])),
  };
}

const selectExisting = `
  SELECT id, NULL AS key, NULL AS fingerprint, NULL AS document FROM unreel.tasks WHERE id = ANY(:ids)
  UNION ALL SELECT NULL, key, fingerprint, answer FROM unreel.idempotency_keys WHERE key = ANY(:keys) AND ends_at > :now`;

interface ExistingRow {
  id: string | null;
  key: string | null;
  fingerprint: string;
  document: string;
}

/** Returns how many tasks are queued. From then on other writes wait for the commit. */
async function lockQueue(sql: Sql): Promise<number> {
  const [counters] = await sql.query<{ queued: number }>("SELECT queued FROM unreel.counters FOR UPDATE");
  return counters?.queued ?? 0;
}

/** Returns how many more tasks of the owner may be queued. From then on other writes wait for the commit. */
export async function lockFreeInQueue(sql: Sql, owner: string | null, maxQueued: number): Promise<number> {
  const [queued, quotas] = await Promise.all([lockQueue(sql), readQuotas(sql, [owner])]);
  const free = Math.max(0, maxQueued - queued);
  const quota = quotas.get(owner ?? "");
  return quota === undefined ? free : freeInQueue(quota, free);
}

async function readQuotas(sql: Sql, all: readonly (string | null)[]): Promise<Map<string, Quota>> {
  const owners = [...new Set(all.flatMap((owner) => owner ?? []))];
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
 * Returns a function that checks that one more task can be stored, and counts it with those before. It throws ServiceError `conflict` if the id
 * exists, `unavailable` if the queue is full, `quota_exceeded` if the owner may not queue it.
 */
export function createAdmission({ ids, queued, quotas }: ExistingRows, maxQueued: number) {
  let waiting = queued;
  const known = new Map(quotas);
  return (insert: NewRow): void => {
    const owner = insert.owner ?? "";
    if (ids.has(insert.id)) throw duplicateTaskError(insert.id);
    assertQueueNotFull(waiting, maxQueued);
    const quota = known.get(owner);
    if (quota !== undefined) assertMayQueue(quota, maxQueued - waiting);
    const added = useChange(undefined, insert);
    waiting += added.queued;
    if (quota !== undefined) known.set(owner, { ...quota, use: addUse(quota.use, added) });
  };
}
