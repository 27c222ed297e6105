import { randomUUID } from "node:crypto";
import type { State, Task } from "../model/task.ts";

/** A change of a task, in the text that its store has written. */
export interface TaskEvent {
  type: "task" | "deleted";
  taskId: string;
  /** The state after the change; undefined if the task was deleted. */
  state: State | undefined;
  /** Whether the task's recording is to end with what there is. */
  isFinishRequested: boolean;
  /** Whether the task has failed with an error that may pass (`retryable`). */
  isRetryable: boolean;
  /** As in the task; null: it has none. */
  owner: string | null;
  /**
   * The task as JSON, without `info` if that is as in the task's previous event; if it was deleted, an object
   * with its `id` alone.
   */
  json: string;
}

export interface PublishedEvent extends TaskEvent {
  /** Opaque, without line breaks; what `since` takes. */
  id: string;
}

/** The changes of all tasks, in order, for any number of subscribers. */
export interface TaskEvents {
  /**
   * Calls `listener` with every later event, synchronously when it is published. Returns the function
   * that ends the subscription; safe to call twice.
   */
  subscribe(listener: (event: PublishedEvent) => void): () => void;
  /** Returns the first `count` events after this id, by default all, oldest first; undefined if some are gone or the id is unknown. */
  since(id: string, count?: number): readonly PublishedEvent[] | undefined;
  /** The newest event's id; before the first event, an id that stands for the start. */
  readonly lastId: string;
}

export interface TaskEventPublisher extends TaskEvents {
  /**
   * Keeps the event for `since` and calls the subscribers. An event that a subscriber publishes is
   * delivered after all subscribers have had the current one.
   *
   * @param number the event's number in a sequence that is kept elsewhere; default: the next one. After a
   * gap or a step back `since` reaches back to this event and no further.
   */
  publish(event: TaskEvent, number?: number): void;
}

interface TaskEventsOptions {
  /** Events that are kept for `since`; default as in `feedBounds`. */
  maxEvents?: number;
  /** Their total length as JSON, UTF-16 units; default as in `feedBounds`. */
  maxLength?: number;
  /** The sequence that the events continue; default: a new one, whose ids no other feed accepts. */
  origin?: FeedOrigin;
  /** Gets the error of a listener that throws; default: it is thrown as an uncaught exception. */
  logger?: { error(fields: object, message: string): void } | undefined;
}

/** A sequence of events that several feeds publish under the same ids. */
interface FeedOrigin {
  /** Without line breaks. */
  feedId: string;
  /** Number of the event before the first one that will be published; 0: there was none. */
  number: number;
}

/** How many events a feed keeps, and how much of their JSON in UTF-16 units. */
export const feedBounds = { maxEvents: 10_000, maxLength: 16 * 1024 * 1024 };

/** Creates a feed in memory. A listener that throws does not stop the others. */
export function createTaskEvents(options: TaskEventsOptions = {}): TaskEventPublisher {
  const { maxEvents, maxLength, origin, logger } = { ...feedBounds, ...options };
  const feedId = origin?.feedId ?? randomUUID().slice(0, 8);
  const buffer = createReplayBuffer<PublishedEvent>(maxEvents, maxLength);
  const subscribers = new Set<Subscriber>();
  const deliveries: { event: PublishedEvent; to: readonly Subscriber[] }[] = [];
  buffer.resetTo(origin?.number ?? 0);

  function deliver(event: PublishedEvent, to: readonly Subscriber[]): void {
    for (const subscriber of to) {
      if (!subscribers.has(subscriber)) continue;
      try {
        subscriber.listener(event);
      } catch (err) {
        if (logger === undefined) throwUncaught(err);
        else logger.error({ err }, "a listener to the changes of tasks failed");
      }
    }
  }

  return {
    publish(change, number = buffer.newest + 1) {
      if (number !== buffer.newest + 1) buffer.resetTo(number - 1);
      const event = { id: `${feedId}-${number}`, ...change };
      buffer.add(event, event.json.length);
      if (subscribers.size === 0) return;
      if (deliveries.push({ event, to: [...subscribers] }) > 1) return;
      for (let next = deliveries[0]; next !== undefined; next = deliveries[0]) {
        deliver(next.event, next.to);
        deliveries.shift();
      }
    },
    subscribe(listener) {
      const subscriber = { listener };
      subscribers.add(subscriber);
      return () => void subscribers.delete(subscriber);
    },
    since(id, count = Infinity) {
      const [, feed, number] = /^(.+)-(\d{1,15})$/.exec(id) ?? [];
      return feed === feedId ? buffer.after(Number(number), count) : undefined;
    },
    get lastId() {
      return `${feedId}-${buffer.newest}`;
    },
  };
}

/** The event of a task that was created or changed. */
export function changeEvent(
  { id: taskId, state, owner, error, finish_requested: isFinishRequested = false }: Task,
  json: string,
): TaskEvent {
  const isRetryable = state === "failed" && error?.retryable === true;
  return { type: "task", taskId, state, isFinishRequested, isRetryable, owner: owner ?? null, json };
}

/** The event of a task that was deleted. */
export function deletedEvent(id: string, owner: string | null): TaskEvent {
  const json = JSON.stringify({ id });
  return { type: "deleted", taskId: id, state: undefined, isFinishRequested: false, isRetryable: false, owner, json };
}

/** An object, so that one listener can subscribe twice. */
interface Subscriber {
  listener: (event: PublishedEvent) => void;
}

function throwUncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

/** Creates a buffer of the newest entries of a sequence numbered from 1, bounded by count and by total size. */
function createReplayBuffer<T>(maxEntries: number, maxSize: number) {
  // Rings: entry n and its size are in slot n modulo maxEntries.
  const entries: (T | undefined)[] = [];
  const sizes: number[] = [];
  let oldest = 1;
  let newest = 0;
  let totalSize = 0;

  function dropOldest(): void {
    const slot = oldest % maxEntries;
    totalSize -= sizes[slot] ?? 0;
    entries[slot] = undefined;
    oldest += 1;
  }

  return {
    /** Drops the oldest entries to stay within the bounds; does not keep an entry that alone exceeds them. */
    add(entry: T, size: number): void {
      if (newest - oldest + 1 === maxEntries) dropOldest();
      newest += 1;
      entries[newest % maxEntries] = entry;
      sizes[newest % maxEntries] = size;
      totalSize += size;
      while (totalSize > maxSize) dropOldest();
    },
    /** Clears the buffer; the next entry gets number `n + 1`. */
    resetTo(n: number): void {
      while (oldest <= newest) dropOldest();
      newest = n;
      oldest = n + 1;
    },
    /** Returns the first `count` entries after number `n`, oldest first; undefined if one of them is gone or `n` is not reached yet. */
    after(n: number, count: number): T[] | undefined {
      if (n < oldest - 1 || n > newest) return undefined;
      const found: T[] = [];
      for (let next = n + 1; next <= Math.min(newest, n + count); next += 1) {
        const entry = entries[next % maxEntries];
        if (entry !== undefined) found.push(entry);
      }
      return found;
    },
    /** The number of the newest entry; 0: there has been none. */
    get newest(): number {
      return newest;
    },
  };
}
