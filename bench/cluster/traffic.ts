import { setTimeout as wait } from "node:timers/promises";
import type { Site } from "../../test/media/site.ts";

/** Clients that never retry. */
export interface Traffic {
  requests: number;
  failed: number;
  /** Number of failures by reason. */
  reasons: Map<string, number>;
  /** Longest request. */
  longestMs: number;
  /** Tasks that were accepted. */
  ids: string[];
  stop(): Promise<void>;
}

/** Pause of a client between its requests. */
const pauseMs = 20;

/** Every tenth request is a POST, the others read a task or the list; `nextUrl` returns the process for each. */
export function startTraffic(options: { site: Site; nextUrl: () => string; clients: number }): Traffic {
  const { site, nextUrl, clients } = options;
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
    const created = await send("/tasks/", { method: "POST", headers, body });
    traffic.ids.push((JSON.parse(created) as { id: string }).id);
  }

  async function read(turn: number): Promise<void> {
    const id = traffic.ids[turn % (traffic.ids.length || 1)] ?? "";
    await send(`/tasks/${turn % 2 === 0 ? id : "?limit=10"}`);
  }

  async function send(path: string, init: RequestInit = {}): Promise<string> {
    const response = await fetch(nextUrl() + path, init);
    const text = await response.text();
    if (response.ok) return text;
    throw new Error(`${response.status} ${text.slice(0, 200)}`);
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

  async function runClient(first: number): Promise<void> {
    for (let turn = first; !stopping.signal.aborted; turn++) {
      await request(turn);
      await wait(pauseMs);
    }
  }

  const all = Promise.all(Array.from({ length: clients }, (_, i) => runClient(i)));
  return traffic;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
