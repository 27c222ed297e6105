import { randomUUID } from "node:crypto";
import { createBacklog } from "./task-events/backlog.ts";
import type { Task } from "./task.ts";

/** A change of a task: the task as it is now, or that it is gone. */
export type TaskChanged =
  | { type: "task"; task: Task }
  | { type: "deleted"; task: Pick<Task, "id"> };

/** A change that was published before. */
export interface PastEvent {
  /** Opaque, without line breaks; shows what to go on from. */
  id: string;
  type: TaskChanged["type"];
  taskId: string;
  /** The change's `task` as JSON. */
  json: string;
}

/** The feed of all changes of tasks, in order, to any number of subscribers. */
export interface TaskEvents {
  publish(change: TaskChanged): void;
  /**
   * Calls `listener` with every change from now on, in the turn in which it is published; gives the
   * function that ends it.
   */
  subscribe(listener: (change: TaskChanged) => void): () => void;
  /**
   * What came after the event with this id, oldest first; `undefined` where the feed does not
   * reach back so far or has never had it.
   */
  since(id: string): readonly PastEvent[] | undefined;
  /**
   * The newest event's id, or one that `since` answers with what comes after now. From its first reading
   * on the feed remembers: before, nobody can have an id to ask with.
   */
  readonly lastId: string;
}

export interface TaskEventsOptions {
  /** Events that `since` reaches back; default 10,000. */
  maxEvents?: number;
  /** Length of these as JSON, UTF-16 units; default 16 Mi. */
  maxLength?: number;
  /** Told of a listener that throws; default: the process is, by an exception that nobody catches. */
  logger?: { error(fields: object, message: string): void };
}

/**
 * A feed in memory. Its ids have a random part, so that no feed answers to another one's. A listener
 * that throws does not stop the others; what a listener publishes follows when all have had the event
 * before.
 */
export function createTaskEvents(options: TaskEventsOptions = {}): TaskEvents {
  const { maxEvents = 10_000, maxLength = 16 * 1024 * 1024, logger } = options;
  const feedId = randomUUID().slice(0, 8);
  const backlog = createBacklog<PastEvent>(maxEvents, maxLength);
  const subscribers = new Set<Subscriber>();
  const deliveries: { change: TaskChanged; to: readonly Subscriber[] }[] = [];
  let isRemembering = false;

  function remember({ type, task }: TaskChanged): void {
    // As text: a copy by nature, made once for all who ask for it.
    const json = JSON.stringify(task);
    const id = `${feedId}-${backlog.newest + 1}`;
    backlog.add({ id, type, taskId: task.id, json }, json.length);
  }

  function deliver(change: TaskChanged, to: readonly Subscriber[]): void {
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
    publish(change) {
      if (isRemembering) remember(change);
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
      const [, feed, number] = /^([0-9a-f]{8})-(\d{1,15})$/.exec(id) ?? [];
      return feed === feedId ? backlog.after(Number(number)) : undefined;
    },
    get lastId() {
      isRemembering = true;
      return `${feedId}-${backlog.newest}`;
    },
  };
}

interface Subscriber {
  listener: (change: TaskChanged) => void;
}

function throwUncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
