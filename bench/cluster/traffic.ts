import { setTimeout as wait } from "node:timers/promises";
import type { Site } from "../../test/media/site.ts";

/** Clients of a service that retry nothing. */
export interface Traffic {
  requests: number;
  failed: number;
  /** How often it failed in which way. */
  reasons: Map<string, number>;
  /** Of one request. */
  longestMs: number;
  /** Tasks that were accepted. */
  ids: string[];
  stop(): Promise<void>;
}

/** Each client waits so long between its requests. */
const pauseMs = 20;

/** Every tenth request is a POST, the others read a task or the list; `address` is asked before each. */
export function startTraffic(options: {
  site: Site;
  address: () => string;
  clients: number;
}): Traffic {
  const { site, address, clients } = options;
  const stopping = new AbortController();
  const traffic: Traffic = {
    requests: 0,
    failed: 0,
    reasons: new Map(),
    longestMs: 0,
    ids: [],
    async stop() {
      stopping.abort();
      await all;
    },
  };

  async function post(): Promise<void> {
    const body = JSON.stringify({ url: site.url("film.mp4") });
    const headers = { "content-type": "application/json" };
    const answer = await send("/tasks/", { method: "POST", headers, body });
    traffic.ids.push((JSON.parse(answer) as { id: string }).id);
  }

  async function read(turn: number): Promise<void> {
    const id = traffic.ids[turn % (traffic.ids.length || 1)] ?? "";
    await send(`/tasks/${turn % 2 === 0 ? id : "?limit=10"}`);
  }

  async function send(path: string, init: RequestInit = {}): Promise<string> {
    const answer = await fetch(address() + path, init);
    const text = await answer.text();
    if (answer.ok) return text;
    throw new Error(`${answer.status} ${text.slice(0, 200)}`);
  }

  async function request(turn: number): Promise<void> {
    const startMs = performance.now();
    traffic.requests += 1;
    try {
      await (turn % 10 === 0 ? post() : read(turn));
    } catch (error) {
      traffic.failed += 1;
      const reason = reasonOf(error);
      traffic.reasons.set(reason, (traffic.reasons.get(reason) ?? 0) + 1);
    }
    traffic.longestMs = Math.max(traffic.longestMs, performance.now() - startMs);
  }

  async function visit(first: number): Promise<void> {
    for (let turn = first; !stopping.signal.aborted; turn++) {
      await request(turn);
      await wait(pauseMs);
    }
  }

  const all = Promise.all(Array.from({ length: clients }, (_, i) => visit(i)));
  return traffic;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
