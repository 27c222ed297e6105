import type { BaseLogger } from "pino";
import { sleep } from "../async/deadline.ts";
import { Shares } from "../async/shares.ts";
import { createClaimLoop } from "../async/claim-loop.ts";
import type { PostClient } from "../net/http/post-client.ts";
import { logOutages } from "../async/outages.ts";
import { hasEnded } from "../model/task.ts";
import { type OutboxLimits, type OutboxMessage, trimmedAtOnce } from "../stores/outbox.ts";
import type { TaskStore } from "../stores/store.ts";
import type { WebhookEndpoint } from "../model/webhook-endpoint.ts";
import { deliver, type DeliverDeps, type DeliveryObserver } from "./deliver.ts";
import { type EndpointState, createEndpoints, type Endpoints } from "./endpoints.ts";

export interface WebhooksOptions {
  store: Pick<TaskStore, "outbox" | "keys" | "events">;
  client: PostClient;
  logger: Pick<BaseLogger, "debug" | "info" | "warn" | "error">;
  /** The service's own endpoint; the store must have been opened with `webhook` then. */
  endpoint?: WebhookEndpoint | undefined;
  observer?: DeliveryObserver | undefined;
  /** Default: the system's clock. */
  now?: () => Date;
  /** Milliseconds since any moment, never set; default `performance.now()`. */
  elapsedMs?: () => number;
  /** Returns 0 ≤ n < 1, to spread retries; default `Math.random`. */
  random?: () => number;
  /** What may wait for the endpoint of a key; the oldest messages beyond that are dropped once a minute. Default 10,000, 250 MB. */
  limits?: OutboxLimits | undefined;
  /** How often the outbox is looked at without an event; default 1,000. */
  pollMs?: number;
}

/** Requests in flight, to all endpoints together, which share them. */
const maxInFlight = 64;

/** Longer than a request may take. */
const leaseMs = 60_000;

const drainMs = 5_000;

const defaultLimits: OutboxLimits = { messages: 10_000, bytes: 250_000_000 };
const trimIntervalMs = 60_000;

/**
 * Sends the messages about ended tasks after the Standard Webhooks specification, each at least once until its
 * endpoint accepts it with 2xx, those of one task in their order. A message that is refused is retried for 24
 * hours, each time after a longer delay. An endpoint whose receiver is unavailable is left alone as a whole,
 * for longer each time, then tried with one message. Any number of processes may send the messages of one store.
 * Errors of the store are logged and retried.
 */
export function createWebhooks(options: WebhooksOptions) {
  const { store, logger, endpoint } = options;
  const nowMs = options.elapsedMs ?? (() => performance.now());
  const { now = () => new Date(), random = Math.random } = options;
  const endpoints = createEndpoints({ keys: store.keys, service: endpoint, nowMs, random });
  const stopping = new AbortController();
  const attempt = logOutages(logger, {
    failed: "sending webhook messages failed; retrying every second",
    restored: "sending webhook messages works again",
  });
  const sender = createSender({
    ...options,
    outbox: store.outbox,
    limits: options.limits ?? defaultLimits,
    nowMs,
    now,
    random,
    endpoints,
    attempt,
    stopping: stopping.signal,
    onSlot: () => wake(),
  });
  const { wake, onIdle } = createClaimLoop({
    // An endpoint with nothing in flight always finds a place.
    hasFreeSlot: () => true,
    claimNext: async () => (await attempt(sender.sendDue)) ?? false,
    signal: stopping.signal,
  });
  let isStarted = false;
  let unfollow = () => {};
  let stopped: Promise<void> | undefined;

  async function halt(): Promise<void> {
    stopping.abort();
    unfollow();
    await onIdle();
    await sender.drain();
  }

  return {
    /** Begins to send; safe to call twice. */
    start(): void {
      if (isStarted || stopped !== undefined) return;
      isStarted = true;
      unfollow = followTasks(options, { endpoints, countEnded: sender.countEnded, wake });
      wake();
    },
    /**
     * Sends nothing more: requests in flight have five seconds to finish, all other messages stay in the outbox.
     * Safe to call twice. Call it before the store is closed.
     */
    stop: (): Promise<void> => (stopped ??= halt()),
  };
}

interface Followers {
  endpoints: Endpoints;
  countEnded: (owner: string) => void;
  wake: () => void;
}

/** Counts tasks that end, and wakes what sends messages about them, also at intervals. Returns the function that stops it. */
function followTasks(
  { store, endpoint, pollMs = 1_000 }: WebhooksOptions,
  { endpoints, countEnded, wake }: Followers,
): () => void {
  const unsubscribe = store.events.subscribe(({ state, owner }) => {
    if (!hasEnded(state)) return;
    if (owner !== null) countEnded(owner);
    // Tasks without an owner are announced to the service's own endpoint alone.
    if (endpoint !== undefined || owner !== null) wake();
  });
  const poll = setInterval(() => {
    if (!endpoints.isEmpty) wake();
  }, pollMs);
  return () => {
    clearInterval(poll);
    unsubscribe();
  };
}

interface SenderOptions extends Omit<DeliverDeps, "signal" | "onResponse"> {
  endpoints: Endpoints;
  limits: OutboxLimits;
  nowMs: () => number;
  /** Runs a delivery; never rejects. */
  attempt: (delivery: () => Promise<void>) => Promise<void>;
  /** Aborted when nothing more is claimed. */
  stopping: AbortSignal;
  /** Called when another message may be sent. */
  onSlot: () => void;
}

/** Claims the messages that are due, and sends each on its own. */
function createSender({ outbox, endpoints, attempt, stopping, onSlot, ...rest }: SenderOptions) {
  const cutting = new AbortController();
  const deps = { ...rest, outbox, onResponse: onSlot, signal: cutting.signal };
  const inFlight = new Set<Promise<void>>();
  const shares = new Shares(maxInFlight);
  const { trim, countEnded } = createTrim({ ...rest, outbox, endpoints });

  function send(message: OutboxMessage, state: EndpointState | undefined): void {
    const release = shares.take(message.endpoint);
    const ended = attempt(() => deliver(message, state, deps)).finally(() => {
      inFlight.delete(ended);
      release?.();
      onSlot();
    });
    inFlight.add(ended);
  }

  return {
    countEnded,
    /** Returns false if there is nothing to send; rejects with the store's error. */
    async sendDue(): Promise<boolean> {
      await endpoints.refresh();
      await trim();
      let sent = 0;
      for (const name of await outbox.due()) {
        // Its key may have been added a moment ago.
        if (endpoints.find(name) === undefined) await endpoints.read();
        const state = endpoints.find(name);
        const limit = Math.min(state?.freeSlots() ?? maxInFlight, shares.free(name));
        if (limit <= 0 || stopping.aborted) continue;
        const messages = await outbox.claim({ endpoint: name, limit, leaseMs });
        for (const message of messages) send(message, state);
        sent += messages.length;
      }
      return sent > 0;
    },

    /** Resolves when no request is in flight: each ends by itself within five seconds, or is aborted then. */
    async drain(): Promise<void> {
      const idle = new AbortController();
      const all = Promise.all(inFlight).finally(() => idle.abort());
      await sleep(drainMs, idle.signal);
      cutting.abort(new Error("the service is shutting down"));
      await all;
    },
  };
}

type TrimOptions = Pick<SenderOptions, "outbox" | "endpoints" | "limits" | "nowMs" | "logger" | "observer">;

/**
 * Creates a `trim` that drops the oldest of too many messages of each key: once a minute, and as soon as as many of its tasks have ended
 * as one call drops. The more messages there are, the longer it takes to find the oldest.
 */
function createTrim({ outbox, endpoints, limits, nowMs, logger, observer }: TrimOptions) {
  let dueMs = nowMs();
  /** Tasks that have ended since the messages of their key were looked at, or more. */
  const ended = new Map<string, number>();

  /** Returns whether there are no more that are too many. */
  async function trimKey(key: string, host: string): Promise<boolean> {
    ended.delete(key);
    const messages = await outbox.trim(key, limits);
    if (messages > 0) {
      const about = { key, host, messages, limits };
      logger.error(about, "the oldest webhook messages of a key dropped: too many wait for its receiver");
    }
    for (let n = 0; n < messages; n += 1) observer?.onRemoved("dropped");
    return messages < trimmedAtOnce;
  }

  return {
    countEnded: (owner: string) => void ended.set(owner, (ended.get(owner) ?? 0) + 1),
    async trim(): Promise<void> {
      const isDue = nowMs() >= dueMs;
      let isDone = true;
      for (const [key, { host }] of endpoints.ofKeys()) {
        if (isDue || (ended.get(key) ?? 0) >= trimmedAtOnce) isDone = (await trimKey(key, host)) && isDone;
      }
      if (isDue) dueMs = nowMs() + (isDone ? trimIntervalMs : 1_000);
    },
  };
}
