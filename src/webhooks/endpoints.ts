import type { KeyStore } from "../stores/key-store.ts";
import { serviceEndpoint } from "../stores/outbox.ts";
import type { WebhookEndpoint } from "../model/webhook-endpoint.ts";
import { createEndpointState, type EndpointState } from "./endpoint-state.ts";

/** The endpoints of the service and of its keys, by name. */
export interface Endpoints {
  /** No message can be sent: there is no endpoint. */
  readonly isEmpty: boolean;
  find(name: string): EndpointState | undefined;
  /** Reads the keys; rejects with the store's error. */
  read(): Promise<void>;
  /** Does so unless they were read a moment ago. */
  refresh(): Promise<void>;
}

export interface EndpointsOptions {
  keys: KeyStore;
  /** The service's own. */
  service: WebhookEndpoint | undefined;
  /** Milliseconds since any moment, never set. */
  nowMs: () => number;
  random: () => number;
}

/** How long the keys that were read are used. */
const freshMs = 1_000;

export function createEndpoints({ keys, service, nowMs, random }: EndpointsOptions): Endpoints {
  let states: ReadonlyMap<string, EndpointState> = new Map();
  let readMs = -Infinity;

  /** An endpoint that has not changed keeps its state. */
  function stateOf(name: string, endpoint: WebhookEndpoint): EndpointState {
    const state = states.get(name);
    const isSame = state?.endpoint.url === endpoint.url && state.endpoint.secret === endpoint.secret;
    return isSame ? state : createEndpointState(endpoint, nowMs, random);
  }

  async function read(): Promise<void> {
    const startMs = nowMs();
    const own = (await keys.list()).map(({ name, webhook }) => [name, webhook] as const);
    const all = [[serviceEndpoint, service] as const, ...own];
    states = new Map(all.flatMap(([name, endpoint]) => (endpoint ? [[name, stateOf(name, endpoint)]] : [])));
    readMs = startMs;
  }

  return {
    get isEmpty() {
      return states.size === 0;
    },
    find: (name) => states.get(name),
    read,
    async refresh() {
      if (nowMs() - readMs >= freshMs) await read();
    },
  };
}
