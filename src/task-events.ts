import { randomUUID } from "node:crypto";
import type { TaskStore } from "./stores/store.ts";
import { createBacklog } from "./task-events/backlog.ts";
import type { Task } from "./task.ts";

/** A change of a task: the task as it is now, or that it is gone. */
export type TaskChanged =
  | { type: "task"; task: Task }
  | { type: "deleted"; task: Pick<Task, "id"> };

/** A change as subscribers get it. */
export interface TaskEvent {
  /** Opaque, without line breaks; shows what to go on from. */
  id: string;
  change: TaskChanged;
}

/** A change that was published before. */
export interface PastEvent {
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
  subscribe(listener: (event: TaskEvent) => void): () => void;
  /**
   * What came after the event with this id, oldest first; `undefined` where the feed does not
   * reach back so far or has never had it.
   */
  since(id: string): readonly PastEvent[] | undefined;
  /** The newest event's id, or one that `since` answers with what comes after now. */
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
  const deliveries: { event: TaskEvent; to: readonly Subscriber[] }[] = [];

  function deliver(event: TaskEvent, to: readonly Subscriber[]): void {
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
    publish(change) {
      const { type, task } = change;
      const id = `${feedId}-${backlog.newest + 1}`;
      // As text: a copy by nature, made once for all who ask for it.
      const json = JSON.stringify(task);
      backlog.add({ id, type, taskId: task.id, json }, json.length);
      if (subscribers.size === 0) return;
      if (deliveries.push({ event: { id, change }, to: [...subscribers] }) > 1) return;
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
    since(id) {
      const [, feed, number] = /^([0-9a-f]{8})-(\d{1,15})$/.exec(id) ?? [];
      return feed === feedId ? backlog.after(Number(number)) : undefined;
    },
    get lastId() {
      return `${feedId}-${backlog.newest}`;
    },
  };
}

interface Subscriber {
  listener: (event: TaskEvent) => void;
}

function throwUncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

/**
 * `store`, with every change that it has made published to `events`: once it is stored, before the
 * caller hears of it. A `create` that an idempotency key answers changes nothing and publishes nothing.
 * Writes to one task follow one another, so that its changes are published in the order in which they
 * took effect.
 */
export function publishChanges(store: TaskStore, events: TaskEvents): TaskStore {
  /** By task: the last write that has not ended. */
  const writes = new Map<string, Promise<unknown>>();

  async function inTurn<T>(id: string, write: () => Promise<T>): Promise<T> {
    const before = writes.get(id);
    const mine = before === undefined ? write() : before.then(write, write);
    writes.set(id, mine);
    try {
      return await mine;
    } finally {
      if (writes.get(id) === mine) writes.delete(id);
    }
  }

  function publish(type: TaskChanged["type"], task: Task): Task {
    events.publish(type === "task" ? { type, task } : { type, task: { id: task.id } });
    return task;
  }

  return {
    name: store.name,
    create: (task, idempotency) => {
      const { id } = task;
      return store
        .create(task, idempotency)
        .then((created) => (created.id === id ? publish("task", created) : created));
    },
    get: (id) => store.get(id),
    list: (query) => store.list(query),
    update: (id, change, options) =>
      inTurn(id, async () => publish("task", await store.update(id, change, options))),
    delete: (id) => inTurn(id, async () => publish("deleted", await store.delete(id))),
    claim: async (query) => {
      const claim = await store.claim(query);
      if (claim !== undefined) publish("task", claim.task);
      return claim;
    },
    heartbeat: (id, lease, leaseMs) => store.heartbeat(id, lease, leaseMs),
    ping: () => store.ping(),
    async close() {
      await Promise.allSettled(writes.values());
      await store.close();
    },
  };
}
