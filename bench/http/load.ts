import autocannon from "autocannon";
import { answerParent } from "../child.ts";
import type { Route } from "./routes.ts";

/** One round of load on one server. */
export interface Load extends Pick<Route, "method" | "body"> {
  url: string;
  connections: number;
  seconds: number;
}

export interface LoadResult {
  requests: number;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** Answers that are not 2xx, connections that broke, and time-outs. */
  failures: number;
  /** Share of the time in which the load generator had something to do; near 1 it is what is measured. */
  busy: number;
}

answerParent(async (question) => runLoad(question as Load));

async function runLoad({ url, method, body, connections, seconds }: Load): Promise<LoadResult> {
  const latencies: number[] = [];
  const headers = { accept: "application/json", "content-type": "application/json" };
  const start = performance.now();
  let end = start;
  const run = autocannon({
    url,
    method,
    connections,
    duration: seconds,
    headers: body === undefined ? { accept: headers.accept } : headers,
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
 * Keeps the event loop turning, for over loopback it is the server that pays for waking a client that
 * sleeps: several microseconds a request, and the more the slower the server. `stop` gives the
 * milliseconds spent in turns that brought no answer.
 */
function stayAwake(answers: () => number): { stop(): number } {
  let idleMs = 0;
  let seen = answers();
  let last = performance.now();
  const turn = () => {
    const now = performance.now();
    if (answers() === seen) idleMs += now - last;
    seen = answers();
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
