import { randomUUID } from "node:crypto";
import { type NewMessage, type Outbox, type OutboxMessage, serviceEndpoint } from "../outbox.ts";
import type { Database, Sql } from "./database.ts";
import { createOutboxRemovals } from "./outbox-removals.ts";

export interface OutboxRowsOptions {
  database: Database;
  /** Returns Unix milliseconds; null: the database's clock, which all processes share. */
  nowMs: () => number | null;
  /** Runs a job on the database. */
  run: <T>(job: () => Promise<T>) => Promise<T>;
  /** Whether the service's own endpoint gets messages. */
  webhook: boolean;
}

export interface OutboxRows extends Outbox {
  /** Adds a message for every endpoint that gets it, in the transaction of the change. */
  add(sql: Sql, message: NewMessage): Promise<void>;
}

/** `bigint`s come as text. */
interface ClaimedRow extends Omit<OutboxMessage, "ageMs"> {
  ageMs: string;
}

/** The same. */
interface Counts {
  messages: string;
  oldestAgeMs: string | null;
}

/**
 * The tables `unreel.outbox_lines` and `unreel.outbox_messages`. Whoever adds messages to a line or takes them
 * from it locks its row first, so that no message is added to a line that is just being removed.
 */
export function createOutboxRows(options: OutboxRowsOptions): OutboxRows {
  const { database, nowMs, run, webhook } = options;

  const remove = createOutboxRemovals(database, nowMs);

  return {
    async add(sql, { id, taskId, owner, body }) {
      if (!webhook && owner === null) return;
      const own = webhook ? [serviceEndpoint] : [];
      await sql.query(addMessages, [nowMs(), own, owner, taskId, id, body]);
    },

    due: () =>
      run(async () => {
        const rows = await database.query<{ endpoint: string }>(dueEndpoints, [nowMs()]);
        return rows.map(({ endpoint }) => endpoint);
      }),

    claim: ({ endpoint, limit, leaseMs }) =>
      run(async () => {
        const values = [nowMs(), endpoint, randomUUID(), leaseMs, limit];
        const rows = await database.query<ClaimedRow>(claimLines, values);
        return rows.map((row) => ({ ...row, ageMs: Number(row.ageMs) }));
      }),

    remove: (message) => run(() => remove(message)),

    postpone: ({ endpoint, taskId, lease }, { delayMs, refusals }) =>
      run(async () => {
        await database.query(releaseLine, [nowMs(), endpoint, taskId, lease, delayMs, refusals]);
      }),

    count: () =>
      run(async () => {
        const [row] = await database.query<Counts>(countMessages, [nowMs()]);
        return { messages: Number(row?.messages), oldestAgeMs: Number(row?.oldestAgeMs ?? 0) };
      }),
  };
}

/** Of every statement $1 is the time. */
const now = "coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";

const addMessages = `
  WITH endpoints AS (
    SELECT unnest($2::text[]) AS endpoint
    UNION ALL SELECT name FROM unreel.keys WHERE name = $3 AND document::jsonb ? 'webhook'
  ), lines AS (
    INSERT INTO unreel.outbox_lines AS line (endpoint, task, due_at)
    SELECT endpoint, $4, ${now} FROM endpoints ORDER BY endpoint
    ON CONFLICT (endpoint, task) DO UPDATE SET due_at = line.due_at RETURNING line
  )
  INSERT INTO unreel.outbox_messages (line, id, body, created_at)
  SELECT line, $5, $6, ${now} FROM lines`;

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
    UPDATE unreel.outbox_lines SET lease = $3, due_at = ${now} + $4
    WHERE line = ANY(ARRAY(
      SELECT line FROM unreel.outbox_lines WHERE endpoint = $2 AND due_at <= ${now}
      ORDER BY due_at LIMIT $5 FOR UPDATE SKIP LOCKED
    )) RETURNING line, endpoint, task, refusals, lease
  )
  SELECT id, endpoint, task AS "taskId", body, refusals, lease, ${now} - created_at AS "ageMs"
  FROM claimed, LATERAL (
    SELECT id, body, created_at FROM unreel.outbox_messages AS message
    WHERE message.line = claimed.line ORDER BY seq LIMIT 1
  ) AS first`;

const countMessages = `
  SELECT count(*) AS messages, ${now} - (
    SELECT created_at FROM unreel.outbox_messages ORDER BY seq LIMIT 1
  ) AS "oldestAgeMs" FROM unreel.outbox_messages`;

const releaseLine = `UPDATE unreel.outbox_lines
  SET due_at = ${now} + $5, refusals = $6, lease = NULL WHERE endpoint = $2 AND task = $3 AND lease = $4`;
