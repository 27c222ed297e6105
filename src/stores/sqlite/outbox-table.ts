import { randomUUID } from "node:crypto";
import {
  type NewMessage,
  type Outbox,
  type OutboxCounts,
  type OutboxLimits,
  type OutboxMessage,
  serviceEndpoint,
  trimmedAtOnce,
} from "../outbox.ts";
import type { Statements } from "./statements.ts";
import type { Transactions } from "./transactions.ts";

interface OutboxTable extends Outbox {
  /** Adds a message for every endpoint that gets it; call it in the transaction of the change. */
  add(message: NewMessage): void;
}

interface DueRow extends Pick<OutboxMessage, "endpoint" | "taskId" | "refusals"> {
  line: number;
  dueAtMs: number;
}

interface MessageRow extends Pick<OutboxMessage, "id" | "body"> {
  createdAtMs: number;
}

interface ExcessRow {
  line: number;
  seq: number;
}

interface CountRow {
  messages: number;
  createdAtMs: number | null;
}

/**
 * The tables `outbox_lines` and `outbox_messages`.
 *
 * @param webhook Whether the service's own endpoint gets messages.
 */
export function createOutboxTable(
  sql: Statements,
  { read, write }: Transactions,
  steadyMs: () => number,
  webhook: boolean,
): OutboxTable {
  function endpointsOf(owner: string | null): string[] {
    const keys = owner === null ? [] : (sql.webhookOfKey.all(owner) as { name: string }[]);
    return [...(webhook ? [serviceEndpoint] : []), ...keys.map(({ name }) => name)];
  }

  /** Returns undefined if the message's lease is lost. */
  function leasedLine({ endpoint, taskId, lease }: OutboxMessage): number | undefined {
    return (sql.leasedLine.get(endpoint, taskId, lease) as { line: number } | undefined)?.line;
  }

  return {
    add({ id, taskId, owner, body }) {
      const nowMs = steadyMs();
      for (const endpoint of endpointsOf(owner)) {
        sql.addLine.run(endpoint, taskId, nowMs);
        sql.addMessage.run(endpoint, taskId, id, body, nowMs);
      }
    },

    due: () =>
      read(() => {
        const lines = [...firstDueLines(sql, steadyMs())].toSorted((a, b) => a.dueAtMs - b.dueAtMs);
        return lines.map(({ endpoint }) => endpoint);
      }),

    claim: ({ endpoint, limit, leaseMs }) =>
      write(() => {
        const nowMs = steadyMs();
        const due = sql.dueLines.all(endpoint, nowMs, limit) as unknown as DueRow[];
        return due.map((row) => claimLine(sql, row, nowMs, leaseMs));
      }),

    remove: (message) =>
      write(() => {
        const line = leasedLine(message);
        if (line === undefined) return;
        sql.removeFirstMessage.run(line);
        if (sql.removeEmptyLine.run(line, line).changes > 0) return;
        sql.releaseLine.run(steadyMs(), 0, line);
      }),

    postpone: (message, { delayMs, refusals }) =>
      write(() => {
        const line = leasedLine(message);
        if (line !== undefined) sql.releaseLine.run(steadyMs() + delayMs, refusals, line);
      }),

    trim: (endpoint, limits) => write(() => trim(sql, endpoint, limits)),

    count: () => read(() => countMessages(sql, steadyMs())),
  };
}

/** Yields the line of each endpoint that has been due for longest; passes over the others in one step. */
function* firstDueLines(sql: Statements, nowMs: number): Generator<DueRow> {
  let endpoint: string | null = "";
  for (;;) {
    ({ endpoint } = sql.nextEndpoint.get(endpoint) as { endpoint: string | null });
    if (endpoint === null) return;
    yield* sql.dueLines.all(endpoint, nowMs, 1) as unknown as DueRow[];
  }
}

function claimLine(
  sql: Statements,
  { line, endpoint, taskId, refusals }: DueRow,
  nowMs: number,
  leaseMs: number,
): OutboxMessage {
  const lease = randomUUID();
  sql.leaseLine.run(nowMs + leaseMs, lease, line);
  const { id, body, createdAtMs } = sql.firstMessage.get(line) as unknown as MessageRow;
  return { id, endpoint, taskId, body, refusals, ageMs: nowMs - createdAtMs, lease };
}

function trim(sql: Statements, endpoint: string, { messages, bytes }: OutboxLimits): number {
  const excess = sql.excessMessages.all(endpoint, messages, bytes, trimmedAtOnce);
  const rows = excess as unknown as ExcessRow[];
  for (const { line, seq } of rows) {
    sql.removeMessage.run(seq);
    sql.removeEmptyLine.run(line, line);
  }
  return rows.length;
}

function countMessages(sql: Statements, nowMs: number): OutboxCounts {
  const { messages, createdAtMs } = sql.countMessages.get() as unknown as CountRow;
  return { messages, oldestAgeMs: createdAtMs === null ? 0 : nowMs - createdAtMs };
}
