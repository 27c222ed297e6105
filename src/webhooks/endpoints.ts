import type { KeyStore } from "../stores/key-store.ts";
import { serviceEndpoint } from "../stores/outbox.ts";
import type { WebhookEndpoint } from "../model/webhook-endpoint.ts";

export type Endpoints = ReturnType<typeof createEndpoints>;

interface EndpointsOptions {
  keys: KeyStore;
  /** The service's own. */
  service: WebhookEndpoint | undefined;
  /** Milliseconds since any moment, never set. */
  nowMs: () => number;
  random: () => number;
}

/** How long the keys that were read are used. */
const freshMs = 1_000;

/** Creates the endpoints of the service and of its keys, by name. */
export function createEndpoints({ keys, service, nowMs, random }: EndpointsOptions) {
  let states: ReadonlyMap<string, EndpointState> = new Map();
  let readMs = -Infinity;

  /** An endpoint that has not changed keeps its state. */
  function stateOf(name: string, endpoint: WebhookEndpoint): EndpointState {
    const state = states.get(name);
    const isSame = state?.endpoint.url === endpoint.url && state.endpoint.secret === endpoint.secret;
    return isSame ? state : createEndpointState(endpoint, nowMs, random);
  }

  /** Reads the keys; rejects with the store's error. */
  async function read(): Promise<void> {
    const startMs = nowMs();
    const own = (await keys.list()).map(({ name, webhook }) => [name, webhook] as const);
    const all = [[serviceEndpoint, service] as const, ...own];
    states = new Map(all.flatMap(([name, endpoint]) => (endpoint ? [[name, stateOf(name, endpoint)]] : [])));
    readMs = startMs;
  }

  return {
    /** No message can be sent: there is no endpoint. */
    get isEmpty(): boolean {
      return states.size === 0;
    },
    find: (name: string) => states.get(name),
    /** Those of keys. */
    ofKeys: () => [...states].filter(([name]) => name !== serviceEndpoint),
    read,
    /** Reads the keys unless they were read a moment ago. */
    async refresh(): Promise<void> {
      if (nowMs() - readMs >= freshMs) await read();
    },
  };
}

export type EndpointState = ReturnType<typeof createEndpointState>;

/** `unavailable`: the receiver takes no message at all now; `aborted`: nothing is known. */
export type Outcome =
  | { kind: "delivered" | "refused" | "aborted" | "gone" }
  | { kind: "unavailable"; retryAfterS: number | undefined };

/** Messages that are sent to one endpoint at a time. */
const maxConcurrent = 8;

const firstPauseMs = 5_000;
const longestPauseMs = 5 * 60_000;

/**
 * Creates the state of an endpoint: how its receiver has responded to this process so far.
 *
 * @param random Returns 0 ≤ n < 1.
 */
function createEndpointState(endpoint: WebhookEndpoint, nowMs: () => number, random: () => number) {
  let inFlight = 0;
  let isDisabled = false;
  /** In a row. */
  let failures = 0;
  let failedMs = -Infinity;
  let pauseEndsMs = -Infinity;

  function settle(outcome: Outcome, startedMs: number): void {
    inFlight -= 1;
    if (outcome.kind === "delivered" || outcome.kind === "refused") failures = 0;
    if (outcome.kind === "gone") isDisabled = true;
    if (outcome.kind !== "unavailable") return;
    // Requests that were sent together fail together, and count once.
    if (startedMs > failedMs) failures += 1;
    failedMs = nowMs();
    const longMs = Math.min(firstPauseMs * 2 ** (failures - 1), longestPauseMs);
    const pauseMs = Math.max(withJitter(longMs, random), 1_000 * (outcome.retryAfterS ?? 0));
    pauseEndsMs = Math.max(pauseEndsMs, failedMs + pauseMs);
  }

  return {
    endpoint,
    /** Host of its URL, for logs. */
    host: URL.parse(endpoint.url)?.host ?? "",
    /** Its receiver wants no more messages. */
    get isDisabled(): boolean {
      return isDisabled;
    },
    /** Returns how many more messages may be sent now; one at a time while the receiver is unavailable. */
    freeSlots(): number {
      if (nowMs() < pauseEndsMs) return 0;
      return Math.max((failures > 0 ? 1 : maxConcurrent) - inFlight, 0);
    },
    /** Call it before a message is sent; returns the function to call with the outcome. */
    begin(): (outcome: Outcome) => void {
      inFlight += 1;
      const startedMs = nowMs();
      return (outcome) => settle(outcome, startedMs);
    },
    /** How long nothing is sent to its receiver from now on, whole milliseconds. */
    pauseMs: () => Math.max(Math.ceil(pauseEndsMs - nowMs()), 0),
  };
}

/** Returns `ms` plus a random part of up to a fifth, so that what failed together is not repeated together. */
export function withJitter(ms: number, random: () => number): number {
  return Math.round(ms * (1 + random() / 5));
}
