import { randomUUID } from "node:crypto";
import { type NewMessage, type Outbox, type OutboxMessage } from "../outbox.ts";

/** The messages of one task for one endpoint. */
interface Line {
  /** Oldest first, never empty. */
  messages: { id: string; body: string; createdMs: number }[];
  dueMs: number;
  refusals: number;
  lease: string | undefined;
}

export interface MemoryOutbox extends Outbox {
  add(message: NewMessage, endpoints: readonly string[]): void;
  clear(): void;
}

/** @param steadyMs Throws if the store is closed. */
export function createMemoryOutbox(steadyMs: () => number): MemoryOutbox {
  /** By endpoint and task, the oldest first. */
  const endpoints = new Map<string, Map<string, Line>>();

  function find({ endpoint, taskId, lease }: OutboxMessage): Line | undefined {
    const line = endpoints.get(endpoint)?.get(taskId);
    return line?.lease === lease ? line : undefined;
  }

  return {
    add({ id, taskId, body }, names) {
      const createdMs = steadyMs();
      for (const endpoint of names) {
        const lines = endpoints.get(endpoint) ?? new Map<string, Line>();
        endpoints.set(endpoint, lines);
        const fresh = { messages: [], dueMs: createdMs, refusals: 0, lease: undefined };
        const line: Line = lines.get(taskId) ?? fresh;
        lines.set(taskId, line);
        line.messages.push({ id, body, createdMs });
      }
    },

    async due() {
      const nowMs = steadyMs();
      const due = [...endpoints].flatMap(([endpoint, lines]) => {
        const dueMs = lines.values().reduce((least, line) => Math.min(least, line.dueMs), Infinity);
        return dueMs <= nowMs ? [{ endpoint, dueMs }] : [];
      });
      return due.toSorted((a, b) => a.dueMs - b.dueMs).map(({ endpoint }) => endpoint);
    },

    async claim({ endpoint, limit, leaseMs }) {
      const nowMs = steadyMs();
      const lines = endpoints.get(endpoint)?.entries() ?? [].values();
      const due = lines.filter(([, { dueMs }]) => dueMs <= nowMs).take(limit);
      return [...due].flatMap(([taskId, line]): OutboxMessage[] => {
        const [first] = line.messages;
        if (first === undefined) return [];
        const { id, body, createdMs } = first;
        const lease = randomUUID();
        Object.assign(line, { dueMs: nowMs + leaseMs, lease });
        const { refusals } = line;
        return [{ id, endpoint, taskId, body, refusals, ageMs: nowMs - createdMs, lease }];
      });
    },

    async remove(message) {
      const nowMs = steadyMs();
      const line = find(message);
      if (line === undefined) return;
      line.messages.shift();
      Object.assign(line, { dueMs: nowMs, refusals: 0, lease: undefined });
      if (line.messages.length > 0) return;
      const lines = endpoints.get(message.endpoint);
      lines?.delete(message.taskId);
      if (lines?.size === 0) endpoints.delete(message.endpoint);
    },

    async postpone(message, { delayMs, refusals }) {
      const nowMs = steadyMs();
      const line = find(message);
      if (line) Object.assign(line, { dueMs: nowMs + delayMs, refusals, lease: undefined });
    },

    async count() {
      const nowMs = steadyMs();
      const lines = endpoints.values().flatMap((each) => each.values());
      const created = lines.flatMap(({ messages }) => messages.map(({ createdMs }) => createdMs));
      let [messages, oldestMs] = [0, nowMs];
      for (const createdMs of created) {
        messages += 1;
        oldestMs = Math.min(oldestMs, createdMs);
      }
      return { messages, oldestAgeMs: nowMs - oldestMs };
    },

    clear: () => endpoints.clear(),
  };
}
