import { randomUUID } from "node:crypto";
import { type NewMessage, type Outbox, type OutboxMessage, serviceEndpoint } from "../outbox.ts";
import type { Statements } from "./statements.ts";

export interface OutboxTableOptions {
  sql: Statements;
  steadyMs: () => number;
  read<T>(job: () => T): Promise<T>;
  /** Runs a job in a transaction, of its own or with others. */
  write<T>(job: () => { result: T }): Promise<T>;
  /** Whether the service's own endpoint gets messages. */
  webhook: boolean;
}

export interface OutboxTable extends Outbox {
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

interface CountRow {
  messages: number;
  createdAtMs: number | null;
}

/** The tables `outbox_lines` and `outbox_messages`. */
export function createOutboxTable(options: OutboxTableOptions): OutboxTable {
  const { sql, steadyMs, read, write, webhook } = options;

  function endpointsOf(owner: string | null): string[] {
    const keys = owner === null ? [] : (sql.webhookOfKey.all(owner) as { name: string }[]);
    return [...(webhook ? [serviceEndpoint] : []), ...keys.map(({ name }) => name)];
  }

  /** Returns the lines that have been due for longest, one of each endpoint; passes over the others in one step. */
  function* firstDueLines(nowMs: number): Generator<DueRow> {
    let endpoint: string | null = "";
    for (;;) {
      ({ endpoint } = sql.nextEndpoint.get(endpoint) as { endpoint: string | null });
      if (endpoint === null) return;
      yield* sql.dueLines.all(endpoint, nowMs, 1) as unknown as DueRow[];
    }
  }

  function claimLine({ line, endpoint, taskId, refusals }: DueRow, nowMs: number, leaseMs: number) {
    const lease = randomUUID();
    sql.leaseLine.run(nowMs + leaseMs, lease, line);
    const { id, body, createdAtMs } = sql.firstMessage.get(line) as unknown as MessageRow;
    return { id, endpoint, taskId, body, refusals, ageMs: nowMs - createdAtMs, lease };
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
        const lines = [...firstDueLines(steadyMs())].toSorted((a, b) => a.dueAtMs - b.dueAtMs);
        return lines.map(({ endpoint }) => endpoint);
      }),

    claim: ({ endpoint, limit, leaseMs }) =>
      write(() => {
        const nowMs = steadyMs();
        const due = sql.dueLines.all(endpoint, nowMs, limit) as unknown as DueRow[];
        return { result: due.map((row) => claimLine(row, nowMs, leaseMs)) };
      }),

    remove: ({ endpoint, taskId, lease }) =>
      write(() => {
        const { line } = (sql.leasedLine.get(endpoint, taskId, lease) ?? {}) as { line?: number };
        if (line === undefined) return { result: undefined };
        sql.removeFirstMessage.run(line);
        if (sql.removeEmptyLine.run(line, line).changes === 0) {
          sql.releaseLine.run(steadyMs(), 0, line);
        }
        return { result: undefined };
      }),

    postpone: ({ endpoint, taskId, lease }, { delayMs, refusals }) =>
      write(() => {
        const { line } = (sql.leasedLine.get(endpoint, taskId, lease) ?? {}) as { line?: number };
        if (line !== undefined) sql.releaseLine.run(steadyMs() + delayMs, refusals, line);
        return { result: undefined };
      }),

    count: () =>
      read(() => {
        const { messages, createdAtMs } = sql.countMessages.get() as unknown as CountRow;
        return { messages, oldestAgeMs: createdAtMs === null ? 0 : steadyMs() - createdAtMs };
      }),
  };
}
