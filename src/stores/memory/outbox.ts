import { randomUUID } from "node:crypto";
import type { NewMessage, Outbox, OutboxCounts, OutboxMessage, OutboxQuery, Postponement } from "../outbox.ts";

/** The messages of one task for one endpoint. */
interface Line {
  /** Oldest first, never empty. */
  messages: { id: string; body: string; createdMs: number }[];
  dueMs: number;
  refusals: number;
  lease: string | undefined;
}

/** By task, the oldest first. */
type Lines = Map<string, Line>;

export class MemoryOutbox implements Outbox {
  readonly #steadyMs: () => number;
  readonly #endpoints = new Map<string, Lines>();

  /** @param steadyMs Throws if the store is closed. */
  constructor(steadyMs: () => number) {
    this.#steadyMs = steadyMs;
  }

  add({ id, taskId, body }: NewMessage, endpoints: readonly string[]): void {
    const createdMs = this.#steadyMs();
    for (const endpoint of endpoints) {
      const lines = this.#endpoints.getOrInsertComputed(endpoint, () => new Map());
      const fresh = () => ({ messages: [], dueMs: createdMs, refusals: 0, lease: undefined });
      lines.getOrInsertComputed(taskId, fresh).messages.push({ id, body, createdMs });
    }
  }

  async due(): Promise<string[]> {
    const nowMs = this.#steadyMs();
    return [...this.#endpoints]
      .map(([endpoint, lines]) => ({ endpoint, dueMs: dueMsOf(lines) }))
      .filter(({ dueMs }) => dueMs <= nowMs)
      .toSorted((a, b) => a.dueMs - b.dueMs)
      .map(({ endpoint }) => endpoint);
  }

  async claim({ endpoint, limit, leaseMs }: OutboxQuery): Promise<OutboxMessage[]> {
    const nowMs = this.#steadyMs();
    const lines = this.#endpoints.get(endpoint)?.entries() ?? [].values();
    const due = lines.filter(([, { dueMs }]) => dueMs <= nowMs).take(limit);
    return [...due].flatMap(([taskId, line]) => {
      const lease = randomUUID();
      const [first] = line.messages;
      Object.assign(line, { dueMs: nowMs + leaseMs, lease });
      if (first === undefined) return [];
      const { id, body, createdMs } = first;
      const { refusals } = line;
      return { id, endpoint, taskId, body, refusals, ageMs: nowMs - createdMs, lease };
    });
  }

  async remove(message: OutboxMessage): Promise<void> {
    const nowMs = this.#steadyMs();
    const line = this.#find(message);
    if (line === undefined) return;
    line.messages.shift();
    Object.assign(line, { dueMs: nowMs, refusals: 0, lease: undefined });
    if (line.messages.length > 0) return;
    const lines = this.#endpoints.get(message.endpoint);
    lines?.delete(message.taskId);
    if (lines?.size === 0) this.#endpoints.delete(message.endpoint);
  }

  async postpone(message: OutboxMessage, { delayMs, refusals }: Postponement): Promise<void> {
    const nowMs = this.#steadyMs();
    const line = this.#find(message);
    if (line) Object.assign(line, { dueMs: nowMs + delayMs, refusals, lease: undefined });
  }

  async count(): Promise<OutboxCounts> {
    const nowMs = this.#steadyMs();
    const lines = this.#endpoints.values().flatMap((each) => each.values());
    let [messages, oldestMs] = [0, nowMs];
    for (const { createdMs } of lines.flatMap((line) => line.messages)) {
      messages += 1;
      oldestMs = Math.min(oldestMs, createdMs);
    }
    return { messages, oldestAgeMs: nowMs - oldestMs };
  }

  clear(): void {
    this.#endpoints.clear();
  }

  #find({ endpoint, taskId, lease }: OutboxMessage): Line | undefined {
    const line = this.#endpoints.get(endpoint)?.get(taskId);
    return line?.lease === lease ? line : undefined;
  }
}

/** Returns when the first line may be claimed; Infinity: there is none. */
function dueMsOf(lines: Lines): number {
  return lines.values().reduce((least, { dueMs }) => Math.min(least, dueMs), Infinity);
}
