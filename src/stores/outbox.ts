import { randomUUID } from "node:crypto";
import type { Task } from "../model/task.ts";

/**
 * The messages to webhooks' receivers about ended tasks, until they are delivered or given up. A store
 * writes them together with the change itself: when a task becomes `succeeded`, `failed` or `canceled`, one for
 * the service's endpoint if the store was opened with `webhook`, and one for the endpoint of the task's owner if
 * its key has a `webhook` then. There is none about a task that a collection has made, but one about the collection.
 *
 * The messages of one task for one endpoint form a line: only the oldest can be claimed, the next one once that
 * is removed. As with tasks, a change is durable when its promise resolves, and a store that is unreachable or
 * closed rejects with `unavailable`.
 */
export interface Outbox {
  /** Returns the endpoints with a message that may be sent now, the one whose message has waited longest first. */
  due(): Promise<string[]>;
  /**
   * Claims messages for an endpoint that may be sent now: each the oldest of its line, not postponed, under no
   * other lease; at most `limit`. A store that one process has to itself expires all leases when it is opened.
   */
  claim(query: OutboxQuery): Promise<OutboxMessage[]>;
  /** Removes a claimed message; does nothing if its lease is lost. */
  remove(message: OutboxMessage): Promise<void>;
  /**
   * Ends the lease; the message may be claimed again `delayMs` from now, at most `maxDelayMs`, and then has
   * these `refusals`. Does nothing if its lease is lost.
   */
  postpone(message: OutboxMessage, given: Postponement): Promise<void>;
  /**
   * Removes the oldest messages for an endpoint while it has more than these, except those about a task one of which is
   * claimed: at most `trimmedAtOnce`. Returns how many.
   */
  trim(endpoint: string, limits: OutboxLimits): Promise<number>;
  /** Counts the messages for all endpoints, those that are claimed or postponed included. */
  count(): Promise<OutboxCounts>;
}

export interface OutboxCounts {
  messages: number;
  /** `ageMs` of the oldest message; 0 if there is none. */
  oldestAgeMs: number;
}

export interface OutboxLimits {
  messages: number;
  /** Of their bodies. */
  bytes: number;
}

export const trimmedAtOnce = 1_000;

interface OutboxQuery {
  endpoint: string;
  /** 1–64 */
  limit: number;
  leaseMs: number;
}

interface Postponement {
  /** An integer. */
  delayMs: number;
  refusals: number;
}

export interface OutboxMessage {
  /** Names the event, whichever the endpoint and the attempt: letters, digits, dash, underscore. */
  id: string;
  /** `serviceEndpoint`, or the name of a key. */
  endpoint: string;
  taskId: string;
  /** What to send, as JSON: `type`, `timestamp` and, as `data`, the task as it was after the change. */
  body: string;
  /** How often the endpoint has refused it, as the last `postpone` said. */
  refusals: number;
  /** How long ago the task has ended. */
  ageMs: number;
  /** Proves to the other methods that the message is still held. */
  lease: string;
}

/** Stands for the endpoint that the service's settings name; no key can have this name. */
export const serviceEndpoint = "*";

/** A message before it is known who gets it. */
export type NewMessage = Pick<OutboxMessage, "id" | "taskId" | "body"> & { owner: string | null };

/** Returns the message about a task that has just ended; `document` is the task as JSON. */
export function newMessage(task: Task, document: string): NewMessage {
  const { id: taskId, state, updated_at, owner, kind } = task;
  const type = kind === "collection" ? "collection.ended" : `task.${state}`;
  const head = `{"type":"${type}","timestamp":${JSON.stringify(updated_at)}`;
  return {
    id: `msg_${randomUUID()}`,
    taskId,
    owner: owner ?? null,
    body: `${head},"data":${document}}`,
  };
}
