import { TestClock } from "pg-boss";
import { createClock } from "../../../src/stores/clock.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../../src/stores/postgres/postgres-store.ts";
import type { TaskStore } from "../../../src/stores/store.ts";

export interface ClockedStoreOptions {
  url: string;
  now: () => Date;
  maxQueued?: number;
  elapsedMs?: () => number;
  webhook?: boolean;
  maxKeptBytes?: number | undefined;
  logger?: NonNullable<PostgresStoreOptions["logger"]>;
}

const timeouts = ["query_timeout", "statement_timeout", "idle_in_transaction_session_timeout"];

/**
 * Opens a store with leases of a minute whose job queue uses the same time, counted by `elapsedMs` if that is
 * given: if time has passed since the last
 * call, the background work of the queue is done before the call.
 */
export async function openClockedStore(options: ClockedStoreOptions): Promise<TaskStore> {
  const { url } = options;
  const { steadyMs } = createClock(options);
  const clock = new TestClock(new Date(steadyMs()));
  const address = new URL(url);
  // Other connections use the server's clock.
  address.searchParams.set("options", "-c pgboss.test_clock=on");
  // On a busy machine a statement takes longer than the service waits for it.
  for (const timeout of timeouts) address.searchParams.set(timeout, "60000");
  const store = await openPostgresStore({ ...options, url: address.href, heartbeatS: 60, clock });
  let turning: Promise<void> | undefined;

  async function turn(): Promise<void> {
    await clock.setTime(new Date(steadyMs()));
    await clock.tick(0);
    turning = undefined;
  }

  async function onTime<A extends unknown[], T>(call: (...args: A) => Promise<T>, ...args: A) {
    if (turning === undefined && clock.now() === steadyMs()) return call(...args);
    const given = structuredClone(args);
    await (turning ??= turn());
    return call(...given);
  }

  return {
    events: store.events,
    keys: store.keys,
    outbox: {
      due: () => onTime(store.outbox.due),
      claim: (query) => onTime(store.outbox.claim, query),
      remove: (message) => onTime(store.outbox.remove, message),
      postpone: (message, given) => onTime(store.outbox.postpone, message, given),
      trim: (endpoint, limits) => onTime(store.outbox.trim, endpoint, limits),
      count: () => onTime(store.outbox.count),
    },
    create: (task, idempotency) => onTime(store.create, task, idempotency),
    reuse: (task, idempotency) => onTime(store.reuse, task, idempotency),
    grow: (id, growing) => onTime(store.grow, id, growing),
    retryMembers: (id, lease) => onTime(store.retryMembers, id, lease),
    ownMembers: (id) => onTime(store.ownMembers, id),
    get: (id) => onTime(store.get, id),
    list: (query) => onTime(store.list, query),
    update: (id, change, given) => onTime(store.update, id, change, given),
    delete: (id) => onTime(store.delete, id),
    claim: (query) => onTime(store.claim, query),
    heartbeat: (id, lease, leaseMs) => onTime(store.heartbeat, id, lease, leaseMs),
    storedFiles: (query) => onTime(store.storedFiles, query),
    count: () => onTime(store.count),
    ping: () => onTime(store.ping),
    close: () => store.close(),
  };
}
