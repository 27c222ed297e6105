import { setTimeout as sleep } from "node:timers/promises";
import type { BaseLogger } from "pino";
import { createClaimLoop } from "../async/claim-loop.ts";
import type { PostClient } from "../net/http/post-client.ts";
import { logOutages } from "../async/outages.ts";
import { hasEnded, type OutboxMessage } from "../stores/outbox.ts";
import type { TaskStore } from "../stores/store.ts";
import type { TaskEvent } from "../feed/task-events.ts";
import type { WebhookEndpoint } from "../model/webhook-endpoint.ts";
import { deliver, type DeliveryObserver } from "./deliver.ts";
import type { EndpointState } from "./endpoint-state.ts";
import { createEndpoints } from "./endpoints.ts";

export interface WebhooksOptions {
  store: Pick<TaskStore, "outbox" | "keys" | "events">;
  client: PostClient;
  logger: Pick<BaseLogger, "debug" | "info" | "warn" | "error">;
  /** The service's own endpoint; the store must have been opened with `webhook` then. */
  endpoint?: WebhookEndpoint | undefined;
  /** Default: nobody observes. */
  observer?: DeliveryObserver | undefined;
  /** Default: the system's clock. */
  now?: () => Date;
  /** Milliseconds since any moment, never set; default `performance.now()`. */
  elapsedMs?: () => number;
  /** Returns 0 ≤ n < 1, to spread retries; default `Math.random`. */
  random?: () => number;
  /** How often the outbox is looked at without an event; default 1,000. */
  pollMs?: number;
}

/** Sends the messages of the outbox. */
export interface Webhooks {
  /** Begins to send; safe to call twice. */
  start(): void;
  /**
   * Sends nothing more: requests in flight have five seconds to finish, all other messages stay in the outbox.
   * Safe to call twice. Call it before the store is closed.
   */
  stop(): Promise<void>;
}

/** Requests in flight, to all endpoints together. */
export const maxInFlight = 64;

/** Longer than a request may take. */
const leaseMs = 60_000;

const drainMs = 5_000;

/**
 * Sends the messages about ended tasks after the Standard Webhooks specification, each at least once until its
 * endpoint accepts it with 2xx, those of one task in their order. A message that is refused is retried for 24
 * hours, each time after a longer delay. An endpoint whose receiver is unavailable is left alone as a whole,
 * for longer each time, then tried with one message. Any number of processes may send the messages of one store.
 * Errors of the store are logged and retried.
 */
export function createWebhooks(options: WebhooksOptions): Webhooks {
  const { store, logger, endpoint, pollMs = 1_000 } = options;
  const { now = () => new Date(), random = Math.random } = options;
  const nowMs = options.elapsedMs ?? (() => performance.now());
  const endpoints = createEndpoints({ keys: store.keys, service: endpoint, nowMs, random });
  const stopping = new AbortController();
  const cutting = new AbortController();
  const { outbox } = store;
  const deps = {
    ...options,
    outbox,
    now,
    random,
    onResponse: () => wake(),
    signal: cutting.signal,
  };
  const attempt = logOutages(logger, {
    failed: "sending webhook messages failed; retrying every second",
    restored: "sending webhook messages works again",
  });
  const inFlight = new Set<Promise<unknown>>();
  let finish = () => {};
  let isStarted = false;
  let stopped: Promise<void> | undefined;
  const { wake, onIdle } = createClaimLoop({
    hasFreeSlot: () => inFlight.size < maxInFlight,
    claimNext: async () => (await attempt(launchDue)) ?? false,
    signal: stopping.signal,
  });

  /** Returns false if there is nothing to send. */
  async function launchDue(): Promise<boolean> {
    await endpoints.refresh();
    let launched = 0;
    for (const name of await outbox.due()) {
      // Its key may have been added a moment ago.
      if (endpoints.find(name) === undefined) await endpoints.read();
      const state = endpoints.find(name);
      const free = state?.freeSlots() ?? maxInFlight;
      const limit = Math.min(free, maxInFlight - inFlight.size);
      if (limit <= 0 || stopping.signal.aborted) continue;
      const messages = await outbox.claim({ endpoint: name, limit, leaseMs });
      for (const message of messages) launch(message, state);
      launched += messages.length;
    }
    return launched > 0;
  }

  function launch(message: OutboxMessage, state: EndpointState | undefined): void {
    const delivery = attempt(() => deliver(message, state, deps));
    const ended = delivery.finally(() => {
      inFlight.delete(ended);
      wake();
    });
    inFlight.add(ended);
  }

  function follow({ state, owner }: TaskEvent): void {
    // The tasks of nobody are announced to the service's own endpoint alone.
    if (hasEnded(state) && (endpoint !== undefined || owner !== null)) wake();
  }

  async function halt(): Promise<void> {
    stopping.abort();
    finish();
    await onIdle();
    const idle = new AbortController();
    const all = Promise.all(inFlight).finally(() => idle.abort());
    await sleep(drainMs, undefined, { signal: idle.signal }).catch(() => {});
    cutting.abort(new Error("the service is shutting down"));
    await all;
  }

  return {
    start() {
      if (isStarted || stopped !== undefined) return;
      isStarted = true;
      const unsubscribe = store.events.subscribe(follow);
      const poll = setInterval(() => {
        if (!endpoints.isEmpty) wake();
      }, pollMs);
      finish = () => {
        clearInterval(poll);
        unsubscribe();
      };
      wake();
    },
    stop: () => (stopped ??= halt()),
  };
}
