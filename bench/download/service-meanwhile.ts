import { setTimeout as wait } from "node:timers/promises";
import { format, printTable, type Target } from "../table.ts";
import { type Bench, segmentBytes } from "./part.ts";
import { type BenchService, openBenchService } from "./service.ts";

/** Latency of the service while three downloads run: at full speed, and at 20 MB/s per response. */
export async function measureService(bench: Bench): Promise<Target[]> {
  const { base, maker, largeBytes } = bench;
  const film = maker.mp4("meanwhile", largeBytes);
  const stream = maker.hls("meanwhile", Math.ceil(largeBytes / segmentBytes), segmentBytes);
  const rows: string[][] = [];
  const targets: Target[] = [];
  for (const [name, prefix] of [
    ["at full speed", ""],
    ["at 20 MB/s each", "rate=20000000/"],
  ] as const) {
    await using service = await openBenchService({ CONCURRENCY_PER_HOST: "3" });
    const pages = [film, stream, stream].map((path, i) => `${base}/${prefix}${path}?${i}`);
    const { p50Ms, p99Ms, count, loop } = await loadMeanwhile(service, pages);
    const shown = [p50Ms, p99Ms, loop.p50Ms, loop.p99Ms, loop.maxMs].map(format);
    rows.push([name, `${count}`, ...shown]);
    const about = `, 3 downloads ${name}`;
    targets.push(
      { name: `GET /tasks/ p99${about}`, value: p99Ms, unit: "ms", atMost: 20 },
      { name: `event-loop delay p99${about}`, value: loop.p99Ms, unit: "ms", atMost: 20 },
    );
  }
  const head = ["", "GETs", "p50 ms", "p99 ms", "loop p50", "loop p99", "loop max"];
  printTable("the service while three downloads run", head, rows);
  return targets;
}

/** GETs the list a hundred times a second until all of `pages` are downloaded. */
async function loadMeanwhile(service: BenchService, pages: readonly string[]) {
  const tasks = await Promise.all(pages.map((page) => service.client.post(page)));
  const ended = Promise.all(tasks.map(({ id }) => service.client.ended(id)));
  const done = new AbortController();
  const stop = () => done.abort();
  ended.then(stop, stop);
  await service.loopDelays();
  const latencies: number[] = [];
  while (!done.signal.aborted) {
    const startMs = performance.now();
    const response = await fetch(`${service.url}/tasks/`);
    await response.bytes();
    latencies.push(performance.now() - startMs);
    await wait(10);
  }
  const loop = await service.loopDelays();
  for (const { state, error } of await ended) {
    if (state !== "succeeded") throw new Error(`a download ended as ${state}: ${error?.message}`);
  }
  return { ...quantiles(latencies), count: latencies.length, loop };
}

export function quantiles(values: readonly number[]): { p50Ms: number; p99Ms: number } {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}
