import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import type { EngineObserver } from "../engines/engine.ts";
import { errorCodes } from "../model/errors.ts";
import type { AppObserver } from "../http/server/observe-requests.ts";
import type { MetricsSource } from "../http/routes/metrics.ts";
import { counters, type Definition, gauges, histograms, processMetrics, readGauges } from "./definitions.ts";
import { blockReasons } from "../net/addresses/address-guard.ts";
import type { ResolverObserver } from "../resolvers/wrappers.ts";
import type { RunObserver } from "../runner/run.ts";
import type { StoreObserver } from "../stores/measured.ts";
import type { TaskStore } from "../stores/store.ts";
import { states } from "../model/task.ts";
import type { DeliveryObserver } from "../webhooks/deliver.ts";

interface MetricsOptions {
  /** Its tasks and messages are counted. */
  store: Pick<TaskStore, "count" | "outbox">;
  /** Its free space is measured. */
  files: { freeBytes(): Promise<number> };
  /** Default: the system's clock. */
  now?: () => Date;
}

/** Observes the parts of a process; what it saw is read as text. */
export interface Metrics extends MetricsSource {
  app: AppObserver;
  engine: EngineObserver;
  run: RunObserver;
  onBlocked(reason: string): void;
  onResolved: ResolverObserver;
  onStoreCall: StoreObserver;
  webhooks: DeliveryObserver;
}

/**
 * Creates all series of a process, in the format of Prometheus. The values of labels are of closed sets, so that their
 * number does not grow with what is downloaded or requested. What is read of the store and the disk is at most
 * some seconds old; if that fails, its series are missing.
 */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const count = createEach(counters, (each) => new Counter({ ...each, registers }));
  const gauge = createEach(gauges, (each) => new Gauge({ ...each, registers }));
  const time = createEach(histograms, (each) => new Histogram({ ...each, registers }));
  addReadGauges(registers, options);
  addProcessMetrics(registry);

  function onBlocked(reason: string): void {
    count.blocked.inc({ reason: blockReasons.includes(reason) ? reason : "other" });
  }

  return {
    contentType: registry.contentType,
    read: () => registry.metrics(),
    onBlocked,
    app: {
      onFileBytes: (bytes) => count.servedBytes.inc(bytes),
      onRequest({ method, route, status, seconds }) {
        count.requests.inc({ method, route, status });
        if (status !== "aborted") time.requestSeconds.observe({ method, route }, seconds);
      },
    },
    engine: {
      onBlocked,
      onProcesses: (processes) => gauge.engineProcesses.set(processes),
      onDeath: (cause) => count.engineDeaths.inc({ cause }),
    },
    run: {
      onStart() {
        count.runsStarted.inc();
        gauge.runsActive.inc();
      },
      onBytes: (bytes) => count.downloadedBytes.inc(bytes),
      onEnd({ kind, code = "" }, seconds) {
        gauge.runsActive.dec();
        count.runsEnded.inc({ outcome: kind, code: code in errorCodes ? code : "" });
        time.runSeconds.observe(seconds);
      },
    },
    onResolved: (resolver, outcome, seconds) => time.resolverSeconds.observe({ resolver, outcome }, seconds),
    onStoreCall(method, seconds, hasFailed) {
      time.storeSeconds.observe({ method }, seconds);
      if (hasFailed) count.storeFailures.inc({ method });
    },
    webhooks: {
      onRequest(outcome, seconds) {
        count.deliveries.inc({ outcome });
        time.deliverySeconds.observe(seconds);
      },
      onRemoved: (reason) => count.deliveries.inc({ outcome: reason }),
    },
  };
}

function createEach<K extends string, D, S>(definitions: Record<K, D>, create: (definition: D) => S): Record<K, S> {
  const entries = Object.entries<D>(definitions);
  return Object.fromEntries(entries.map(([key, each]) => [key, create(each)])) as Record<K, S>;
}

/** Adds what the store knows of all tasks and messages, those of other processes included, and the free space. */
function addReadGauges(registers: Registry[], { store, files, now = () => new Date() }: MetricsOptions): void {
  /** While `read` fails, the gauge is missing. */
  function add<T>(
    definition: Definition,
    read: () => Promise<T | undefined>,
    set: (gauge: Gauge, value: T) => void,
  ): void {
    const gauge: Gauge = new Gauge({
      ...definition,
      registers,
      async collect() {
        const value = await read();
        if (value !== undefined) return set(gauge, value);
        // The first clears the series with labels; of a gauge without, it makes a 0.
        gauge.reset();
        return gauge.remove({});
      },
    });
  }
  const readTasks = createTimelyRead(() => store.count());
  const readMessages = createTimelyRead(() => store.outbox.count());
  add(readGauges.tasks, readTasks, (gauge, { byState }) => {
    for (const state of states) gauge.set({ state }, byState[state]);
  });
  add(readGauges.oldestTask, readTasks, (gauge, { oldestQueuedAt }) => {
    const ageMs = oldestQueuedAt === null ? 0 : now().getTime() - Date.parse(oldestQueuedAt);
    gauge.set(Math.max(0, ageMs / 1_000));
  });
  add(
    readGauges.freeBytes,
    createTimelyRead(() => files.freeBytes()),
    (gauge, bytes) => gauge.set(bytes),
  );
  add(readGauges.messages, readMessages, (gauge, { messages }) => gauge.set(messages));
  add(readGauges.oldestMessage, readMessages, (gauge, { oldestAgeMs }) => gauge.set(oldestAgeMs / 1_000));
}

/** Adds the process's own metrics: processor time, memory, files, and how late its event loop is. */
function addProcessMetrics(registry: Registry): void {
  const all = new Registry();
  collectDefaultMetrics({ register: all });
  for (const name of processMetrics) {
    const metric = all.getSingleMetric(name);
    if (metric !== undefined) registry.registerMetric(metric);
  }
}

/** A read is repeated after ten times as long as it took, but after 5 s at the earliest. */
const restFactor = 10;
const minRestMs = 5_000;

/** How long a caller waits for the first result, and for a newer one. */
const firstWaitMs = 1_000;
const laterWaitMs = 10;

/**
 * Returns a function that returns what `read` last resolved to, reading again if that is old. It never waits for long:
 * a caller gets an earlier result if the read takes longer. Undefined if there is none, or if the last read failed.
 */
export function createTimelyRead<T>(read: () => Promise<T>): () => Promise<T | undefined> {
  let latest: T | undefined;
  let nextMs = -Infinity;
  let reading: Promise<void> | undefined;

  async function refresh(): Promise<void> {
    const startedMs = performance.now();
    try {
      latest = await read();
    } catch {
      // The store's own metrics and the log show its failures.
      latest = undefined;
    }
    const endedMs = performance.now();
    nextMs = endedMs + Math.max(minRestMs, restFactor * (endedMs - startedMs));
    reading = undefined;
  }

  return async () => {
    if (performance.now() >= nextMs) reading ??= refresh();
    const waitMs = latest === undefined ? firstWaitMs : laterWaitMs;
    if (reading !== undefined) await settledWithin(reading, waitMs);
    return latest;
  };
}

async function settledWithin(promise: Promise<void>, ms: number): Promise<void> {
  const { promise: timeout, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([promise, timeout]);
  clearTimeout(timer);
}
