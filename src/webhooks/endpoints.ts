import type { KeyStore } from "../stores/key-store.ts";
import { serviceEndpoint } from "../stores/outbox.ts";
import type { WebhookEndpoint } from "../model/webhook-endpoint.ts";
import { createEndpointState, type EndpointState } from "./endpoint-state.ts";

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
    read,
    /** Reads the keys unless they were read a moment ago. */
    async refresh(): Promise<void> {
      if (nowMs() - readMs >= freshMs) await read();
    },
  };
}
