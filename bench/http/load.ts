import autocannon from "autocannon";
import { answerParent } from "../child.ts";
import type { Route } from "./routes.ts";

/** One round of load on one server. */
export interface Load extends Pick<Route, "method" | "body"> {
  url: string;
  /** Secret of the key that the requests have. */
  key?: string | undefined;
  connections: number;
  seconds: number;
}

export interface LoadResult {
  requests: number;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** Responses that are not 2xx, broken connections and timeouts. */
  failures: number;
  /** Share of the time in which the load generator was busy; near 1 it limits the measurement. */
  busy: number;
}

answerParent(async (question) => runLoad(question as Load));

async function runLoad({ url, key, method, body, connections, seconds }: Load): Promise<LoadResult> {
  const latencies: number[] = [];
  const headers = { accept: "application/json", "content-type": "application/json" };
  const start = performance.now();
  let end = start;
  const run = autocannon({
    url,
    method,
    connections,
    duration: seconds,
    headers: {
      ...(body === undefined ? { accept: headers.accept } : headers),
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    },
    ...(body !== undefined && { body }),
  });
  run.on("response", (_client, _status, _bytes, ms) => {
    latencies.push(ms);
    end = performance.now();
  });
  const watch = stayAwake(() => latencies.length);
  const { errors, timeouts, non2xx } = await run;
  const idleMs = watch.stop();
  const sorted = latencies.toSorted((a, b) => a - b);
  return {
    requests: sorted.length,
    perSecond: (1000 * sorted.length) / (end - start),
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    failures: errors + timeouts + non2xx,
    busy: 1 - idleMs / (end - start),
  };
}

/**
 * Keeps the event loop busy: over loopback the server pays for waking a sleeping client, several
 * microseconds per request. `stop` returns the milliseconds spent in turns without a response.
 */
function stayAwake(responses: () => number): { stop(): number } {
  let idleMs = 0;
  let seen = responses();
  let last = performance.now();
  const turn = () => {
    const now = performance.now();
    if (responses() === seen) idleMs += now - last;
    seen = responses();
    last = now;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  return {
    stop() {
      clearImmediate(next);
      return idleMs;
    },
  };
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
}
