import { randomUUID } from "node:crypto";
import type { State, Task } from "../model/task.ts";
import { ReplayBuffer } from "./replay-buffer.ts";

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
  /** Returns events after this id, oldest first; undefined if some of them are gone or the id is unknown. */
  since(id: string, query?: EventQuery): readonly PublishedEvent[] | undefined;
  /** The newest event's id; before the first event, an id that stands for the start. */
  readonly lastId: string;
}

interface EventQuery {
  /** The first ones; default: all. */
  count?: number | undefined;
  /** Default: those of all owners, of which the first that is gone takes the older ones with it. */
  owner?: string | undefined;
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
  /** Events up to this number: of each owner that has some here, none is missing after its first one. Default: none. */
  older?: readonly { number: number; event: TaskEvent }[];
}

/** How many events a feed keeps, and how much of their JSON in UTF-16 units; of each owner what `ReplayBuffer` says. */
export const feedBounds = { maxEvents: 10_000, maxLength: 16 * 1024 * 1024 };

/** Creates a feed in memory. A listener that throws does not stop the others. */
export function createTaskEvents(options: TaskEventsOptions = {}): TaskEventPublisher {
  const { maxEvents, maxLength, origin, logger } = { ...feedBounds, ...options };
  const feedId = origin?.feedId ?? randomUUID().slice(0, 8);
  const buffer = new ReplayBuffer<PublishedEvent>({ maxEvents, maxLength });
  const subscribers = new Set<Subscriber>();
  const deliveries: { event: PublishedEvent; to: readonly Subscriber[] }[] = [];
  for (const { number, event } of origin?.older ?? []) {
    buffer.skipTo(number - 1);
    buffer.add({ id: `${feedId}-${number}`, ...event });
  }
  buffer.skipTo(origin?.number ?? 0);

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
      buffer.add(event);
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
    since(id, { count = Infinity, owner } = {}) {
      const [, feed, number] = /^(.+)-(\d{1,15})$/.exec(id) ?? [];
      return feed === feedId ? buffer.after(Number(number), count, owner) : undefined;
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
