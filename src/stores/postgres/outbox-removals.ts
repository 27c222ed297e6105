import type { OutboxMessage } from "../outbox.ts";
import type { Database } from "./database.ts";

interface Removal {
  message: OutboxMessage;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Returns a function that removes a claimed message, unless its lease is lost. Those that are given while others are
 * being removed are removed after them, in one transaction.
 */
export function createOutboxRemovals(
  database: Database,
  nowMs: () => number | null,
): (message: OutboxMessage) => Promise<void> {
  let waiting: Removal[] = [];
  let isRemoving = false;

  /** Never rejects. */
  async function removeWaiting(): Promise<void> {
    isRemoving = true;
    while (waiting.length > 0) {
      const removals = waiting;
      waiting = [];
      try {
        await removeAll(removals.map(({ message }) => message));
        for (const { resolve } of removals) resolve();
      } catch (error) {
        for (const { reject } of removals) reject(error);
      }
    }
    isRemoving = false;
  }

  async function removeAll(messages: readonly OutboxMessage[]): Promise<void> {
    const held = [
      messages.map(({ endpoint }) => endpoint),
      messages.map(({ taskId }) => taskId),
      messages.map(({ lease }) => lease),
    ];
    await database.transaction(async (sql) => {
      const rows = await sql.query<{ line: string }>(lockLines, held);
      if (rows.length === 0) return;
      const lines = rows.map(({ line }) => line);
      await sql.query(removeFirstMessages, [lines]);
      const removed = await sql.query(removeEmptyLines, [lines]);
      if (removed.length < lines.length) await sql.query(releaseLines, [nowMs(), lines]);
    });
  }

  return (message) =>
    new Promise((resolve, reject) => {
      waiting.push({ message, resolve, reject });
      if (!isRemoving) void removeWaiting();
    });
}

/** Locks the lines in the order in which messages are added to them, so that adding and removing cannot deadlock. */
const lockLines = `
  SELECT line FROM unreel.outbox_lines WHERE (endpoint, task, lease) IN (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[])
  ) ORDER BY endpoint, task FOR UPDATE`;

const removeFirstMessages = `
  DELETE FROM unreel.outbox_messages WHERE seq IN (
    SELECT (
      SELECT min(seq) FROM unreel.outbox_messages AS message WHERE message.line = held.line
    ) FROM unnest($1::bigint[]) AS held (line)
  )`;

/** A statement of its own: it sees the messages that were added before the lines were locked. */
const removeEmptyLines = `
  DELETE FROM unreel.outbox_lines AS held WHERE line = ANY($1::bigint[])
  AND NOT EXISTS (SELECT 1 FROM unreel.outbox_messages AS message WHERE message.line = held.line)
  RETURNING 1`;

/** $1: Unix milliseconds; null: the clock of the database. */
const releaseLines = `
  UPDATE unreel.outbox_lines SET refusals = 0, lease = NULL,
    due_at = coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
  WHERE line = ANY($2::bigint[])`;
