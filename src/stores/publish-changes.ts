import {
  createTaskEvents,
  type TaskEvent,
  type TaskEvents,
  type TaskEventsOptions,
} from "../task-events.ts";
import type { Task } from "../task.ts";
import { createKeyedMutex } from "../keyed-mutex.ts";
import type { Claim, ClaimQuery, OpenedStore, TaskStore } from "./store.ts";

/** A store whose changes are all made by this process, with its feed; default: one of its own. */
export function withFeed(
  store: TaskStore,
  logger: TaskEventsOptions["logger"],
  events = createTaskEvents(logger && { logger }),
): OpenedStore {
  return { store: publishChanges(store, events), events };
}

/**
 * `store`, with every change that it has made published to `events`: once it is stored, before the
 * caller hears of it. A `create` that an idempotency key answers changes nothing and publishes nothing.
 * Writes to one task follow one another, so that its changes are published in the order in which they
 * took effect.
 */
export function publishChanges(store: TaskStore, events: TaskEvents): TaskStore {
  /** Of the writes to each task. */
  const mutex = createKeyedMutex();
  /** All claims so far: their tasks are known only once they have ended. */
  let claims: Promise<unknown> = Promise.resolve();

  /** Behind the claims, for what was written may be to a task that one of them has taken. */
  async function publishWrite(type: TaskEvent["type"], write: Promise<Task>): Promise<Task> {
    const task = await write;
    await claims;
    return publish(type, task);
  }

  async function claim(query: ClaimQuery): Promise<Claim | undefined> {
    const claimed = await store.claim(query);
    if (claimed !== undefined) publish("task", claimed.task);
    return claimed;
  }

  function publish(type: TaskEvent["type"], task: Task): Task {
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
      mutex.runExclusive(id, () => publishWrite("task", store.update(id, change, options))),
    delete: (id) => mutex.runExclusive(id, () => publishWrite("deleted", store.delete(id))),
    claim: (query) => {
      const mine = claim(query);
      // Nothing is carried on, else each would hold those before it.
      claims = Promise.allSettled([claims, mine]).then(() => undefined);
      return mine;
    },
    heartbeat: (id, lease, leaseMs) => store.heartbeat(id, lease, leaseMs),
    ping: () => store.ping(),
    async close() {
      await mutex.onIdle();
      await store.close();
    },
  };
}
