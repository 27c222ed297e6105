import { randomUUID } from "node:crypto";
import { createReplayBuffer } from "./task-events/replay-buffer.ts";
import type { Task } from "./task.ts";

/** A change of a task: the task as it is now, or that it is gone. */
export type TaskEvent = { type: "task"; task: Task } | { type: "deleted"; task: Pick<Task, "id"> };

/** A change that was published before. */
export interface PastEvent {
  /** Opaque, without line breaks; shows what to go on from. */
  id: string;
  type: TaskEvent["type"];
  taskId: string;
  /** The change's `task` as JSON. */
  json: string;
}

/** The feed of all changes of tasks, in order, to any number of subscribers. */
export interface TaskEvents {
  /**
   * `number`: the change's place in a sequence that is kept elsewhere; default the next one. After any
   * other than the next one the feed reaches back no further than to this change.
   */
  publish(change: TaskEvent, number?: number): void;
  /**
   * Calls `listener` with every change from now on, in the turn in which it is published; gives the
   * function that ends it.
   */
  subscribe(listener: (change: TaskEvent) => void): () => void;
  /**
   * What came after the event with this id, oldest first; `undefined` where the feed does not
   * reach back so far or has never had it.
   */
  since(id: string): readonly PastEvent[] | undefined;
  /**
   * The newest event's id, or one that `since` answers with what comes after now. From its first reading
   * on a feed without an `origin` remembers: before, nobody can have an id to ask with.
   */
  readonly lastId: string;
}

export interface TaskEventsOptions {
  /** Events that `since` reaches back; default that of `feedBounds`. */
  maxEvents?: number;
  /** Length of these as JSON, UTF-16 units; default that of `feedBounds`. */
  maxLength?: number;
  /** The sequence of changes that the feed carries on, of which it remembers all that is published. */
  origin?: FeedOrigin;
  /** Told of a listener that throws; default: the process is, by an exception that nobody catches. */
  logger?: { error(fields: object, message: string): void };
}

/** A sequence of changes that more than one feed tells of, under the same ids. */
export interface FeedOrigin {
  /** Without line breaks. */
  feedId: string;
  /** Of the change that the first one published comes behind; 0: there has been none. */
  number: number;
}

/** How far a feed reaches back: events, and their length as JSON in UTF-16 units. */
export const feedBounds = { maxEvents: 10_000, maxLength: 16 * 1024 * 1024 };

/**
 * A feed in memory. Its ids have a random part unless it has an `origin`, so that no feed answers to
 * another one's. A listener that throws does not stop the others; what a listener publishes follows
 * when all have had the event before.
 */
export function createTaskEvents(options: TaskEventsOptions = {}): TaskEvents {
  const { maxEvents, maxLength, origin, logger } = { ...feedBounds, ...options };
  const feedId = origin?.feedId ?? randomUUID().slice(0, 8);
  const backlog = createReplayBuffer<PastEvent>(maxEvents, maxLength);
  const subscribers = new Set<Subscriber>();
  const deliveries: { change: TaskEvent; to: readonly Subscriber[] }[] = [];
  let isRemembering = origin !== undefined;
  backlog.resetTo(origin?.number ?? 0);

  function remember({ type, task }: TaskEvent, number = backlog.newest + 1): void {
    if (number !== backlog.newest + 1) backlog.resetTo(number - 1);
    // As text: a copy by nature, made once for all who ask for it.
    const json = JSON.stringify(task);
    const id = `${feedId}-${number}`;
    backlog.add({ id, type, taskId: task.id, json }, json.length);
  }

  function deliver(change: TaskEvent, to: readonly Subscriber[]): void {
    for (const subscriber of to) {
      if (!subscribers.has(subscriber)) continue;
      try {
        subscriber.listener(change);
      } catch (err) {
        if (logger === undefined) throwUncaught(err);
        else logger.error({ err }, "a listener to the changes of tasks failed");
      }
    }
  }

  return {
    publish(change, number) {
      if (isRemembering) remember(change, number);
      if (subscribers.size === 0) return;
      if (deliveries.push({ change, to: [...subscribers] }) > 1) return;
      for (let next = deliveries[0]; next !== undefined; next = deliveries[0]) {
        deliver(next.change, next.to);
        deliveries.shift();
      }
    },
    subscribe(listener) {
      const subscriber = { listener };
      subscribers.add(subscriber);
      return () => void subscribers.delete(subscriber);
    },
    since(id) {
      const [, feed, number] = /^(.+)-(\d{1,15})$/.exec(id) ?? [];
      return feed === feedId ? backlog.after(Number(number)) : undefined;
    },
    get lastId() {
      isRemembering = true;
      return `${feedId}-${backlog.newest}`;
    },
  };
}

interface Subscriber {
  listener: (change: TaskEvent) => void;
}

function throwUncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
