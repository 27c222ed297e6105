import { randomUUID } from "node:crypto";
import { createBatches } from "../../async/batches.ts";
import {
  type NewMessage,
  type Outbox,
  type OutboxCounts,
  type OutboxLimits,
  type OutboxMessage,
  serviceEndpoint,
  trimmedAtOnce,
} from "../outbox.ts";
import type { Database, Sql } from "./database.ts";

interface OutboxRowsOptions {
  database: Database;
  /** Returns Unix milliseconds; null: the database's clock, which all processes share. */
  nowMs: () => number | null;
  run: <T>(job: () => Promise<T>) => Promise<T>;
  /** Whether the service's own endpoint gets messages. */
  webhook: boolean;
}

interface OutboxRows extends Outbox {
  /** Adds a message for every endpoint that gets it, in the transaction of the change. */
  add(sql: Sql, message: NewMessage): Promise<void>;
}

/**
 * The tables `unreel.outbox_lines` and `unreel.outbox_messages`. Whoever adds messages to a line or takes them
 * from it locks its row first, so that no message is added to a line that is just being removed.
 */
export function createOutboxRows(options: OutboxRowsOptions): OutboxRows {
  const { database, nowMs, run, webhook } = options;
  const remove = createBatches<OutboxMessage>((messages) => removeHeld(database, nowMs, messages));

  return {
    async add(sql, { id, taskId, owner, body }) {
      if (!webhook && owner === null) return;
      const endpoints = webhook ? [serviceEndpoint] : [];
      await sql.query(addMessages, { nowMs: nowMs(), endpoints, owner, taskId, id, body });
    },

    due: () =>
      run(async () => {
        const rows = await database.query<{ endpoint: string }>(dueEndpoints, { nowMs: nowMs() });
        return rows.map(({ endpoint }) => endpoint);
      }),

    claim: (query) =>
      run(() => {
        const values = { ...query, nowMs: nowMs(), lease: randomUUID() };
        return database.query<OutboxMessage>(claimLines, values);
      }),

    remove: (message) => run(() => remove(message)),

    postpone: (message, given) =>
      run(async () => {
        await database.query(releaseLine, { ...message, ...given, nowMs: nowMs() });
      }),

    trim: (endpoint, limits) => run(() => database.transaction((sql) => trim(sql, endpoint, limits))),

    count: () =>
      run(async () => {
        const [counts] = await database.query<OutboxCounts>(countMessages, { nowMs: nowMs() });
        return counts ?? { messages: 0, oldestAgeMs: 0 };
      }),
  };
}

async function trim(sql: Sql, endpoint: string, limits: OutboxLimits): Promise<number> {
  const values = { endpoint, ...limits, limit: trimmedAtOnce };
  const excess = await sql.query<{ line: number; seq: number }>(excessMessages, values);
  if (excess.length === 0) return 0;
  const held = await sql.query<{ line: number }>(lockUnclaimed, { lines: excess.map(({ line }) => line) });
  const lines = held.map(({ line }) => line);
  const seqs = excess.map(({ seq }) => seq);
  const removed = await sql.query<{ seq: number }>(removeMessages, { lines, seqs });
  await sql.query(removeEmptyLines, { lines });
  return removed.length;
}

const excessMessages = `
  SELECT line, seq FROM (
    SELECT line, seq, lease, row_number() OVER newest AS place, sum(octet_length(body)) OVER newest AS bytes
    FROM unreel.outbox_lines JOIN unreel.outbox_messages USING (line) WHERE endpoint = :endpoint
    WINDOW newest AS (ORDER BY seq DESC)
  ) AS message WHERE (place > :messages OR bytes > :bytes) AND lease IS NULL ORDER BY seq LIMIT :limit`;

/** In the order of `lockLines`. */
const lockUnclaimed = `
  SELECT line FROM unreel.outbox_lines WHERE line = ANY(:lines::bigint[]) AND lease IS NULL
  ORDER BY endpoint, task FOR UPDATE`;

const removeMessages = `
  DELETE FROM unreel.outbox_messages
  WHERE line = ANY(:lines::bigint[]) AND seq = ANY(:seqs::bigint[])
  RETURNING seq`;

/** Unix milliseconds; null: the clock of the database. */
const now = "coalesce(:nowMs::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";

const addMessages = `
  WITH endpoints AS (
    SELECT unnest(:endpoints::text[]) AS endpoint
    UNION ALL SELECT name FROM unreel.keys WHERE name = :owner AND document::jsonb ? 'webhook'
  ), lines AS (
    INSERT INTO unreel.outbox_lines AS line (endpoint, task, due_at)
    SELECT endpoint, :taskId, ${now} FROM endpoints ORDER BY endpoint
    ON CONFLICT (endpoint, task) DO UPDATE SET due_at = line.due_at RETURNING line
  )
  INSERT INTO unreel.outbox_messages (line, id, body, created_at)
  SELECT line, :id, :body, ${now} FROM lines`;

/** Passes from one endpoint to the next through the index; those whose messages have waited longest come first. */
const dueEndpoints = `
  WITH RECURSIVE endpoints (endpoint) AS (
    SELECT min(endpoint) FROM unreel.outbox_lines
    UNION ALL SELECT (SELECT min(endpoint) FROM unreel.outbox_lines AS line
      WHERE line.endpoint > endpoints.endpoint)
    FROM endpoints WHERE endpoint IS NOT NULL
  )
  SELECT endpoints.endpoint FROM endpoints, LATERAL (
    SELECT due_at FROM unreel.outbox_lines AS line
    WHERE line.endpoint = endpoints.endpoint AND due_at <= ${now} ORDER BY due_at LIMIT 1
  ) AS first
  ORDER BY due_at`;

/** The lines of one call have the same lease: it is compared together with the task. */
const claimLines = `
  WITH claimed AS (
    UPDATE unreel.outbox_lines SET lease = :lease, due_at = ${now} + :leaseMs
    WHERE line = ANY(ARRAY(
      SELECT line FROM unreel.outbox_lines WHERE endpoint = :endpoint AND due_at <= ${now}
      ORDER BY due_at LIMIT :limit FOR UPDATE SKIP LOCKED
    )) RETURNING line, endpoint, task, refusals, lease
  )
  SELECT id, endpoint, task AS "taskId", body, refusals, lease, ${now} - created_at AS "ageMs"
  FROM claimed, LATERAL (
    SELECT id, body, created_at FROM unreel.outbox_messages AS message
    WHERE message.line = claimed.line ORDER BY seq LIMIT 1
  ) AS first`;

const countMessages = `
  SELECT count(*) AS messages, coalesce(${now} - (
    SELECT created_at FROM unreel.outbox_messages ORDER BY seq LIMIT 1
  ), 0) AS "oldestAgeMs" FROM unreel.outbox_messages`;

const releaseLine = `UPDATE unreel.outbox_lines
  SET due_at = ${now} + :delayMs, refusals = :refusals, lease = NULL
  WHERE endpoint = :endpoint AND task = :taskId AND lease = :lease`;

/** Removes claimed messages, but those whose lease is lost. */
async function removeHeld(
  database: Database,
  nowMs: () => number | null,
  messages: readonly OutboxMessage[],
): Promise<void> {
  const held = {
    endpoints: messages.map(({ endpoint }) => endpoint),
    tasks: messages.map(({ taskId }) => taskId),
    leases: messages.map(({ lease }) => lease),
  };
  await database.transaction(async (sql) => {
    const rows = await sql.query<{ line: number }>(lockLines, held);
    if (rows.length === 0) return;
    const lines = rows.map(({ line }) => line);
    await sql.query(removeFirstMessages, { lines });
    const removed = await sql.query(removeEmptyLines, { lines });
    if (removed.length < lines.length) await sql.query(releaseLines, { nowMs: nowMs(), lines });
  });
}

/** Locks the lines in the order in which messages are added to them, so that adding and removing cannot deadlock. */
const lockLines = `
  SELECT line FROM unreel.outbox_lines WHERE (endpoint, task, lease) IN (
    SELECT * FROM unnest(:endpoints::text[], :tasks::text[], :leases::text[])
  ) ORDER BY endpoint, task FOR UPDATE`;

const removeFirstMessages = `
  DELETE FROM unreel.outbox_messages WHERE seq IN (
    SELECT (
      SELECT min(seq) FROM unreel.outbox_messages AS message WHERE message.line = held.line
    ) FROM unnest(:lines::bigint[]) AS held (line)
  )`;

/** A statement of its own: it sees the messages that were added before the lines were locked. */
const removeEmptyLines = `
  DELETE FROM unreel.outbox_lines AS held WHERE line = ANY(:lines::bigint[])
  AND NOT EXISTS (SELECT 1 FROM unreel.outbox_messages AS message WHERE message.line = held.line)
  RETURNING 1`;

const releaseLines = `
  UPDATE unreel.outbox_lines SET refusals = 0, lease = NULL, due_at = ${now}
  WHERE line = ANY(:lines::bigint[])`;
