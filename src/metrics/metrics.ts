import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { EngineObserver } from "../engines/engine.ts";
import { errorCodes } from "../model/errors.ts";
import type { FileStore } from "../files/files.ts";
import type { AppObserver } from "../http/server/observe-requests.ts";
import type { MetricsSource } from "../http/routes/metrics.ts";
import { createDurations } from "./durations.ts";
import { addProcessMetrics } from "./process-metrics.ts";
import { createRequestMetrics } from "./request-metrics.ts";
import { createTimelyRead } from "./timely-read.ts";
import { createWebhookMetrics } from "./webhook-metrics.ts";
import { blockReasons } from "../net/addresses/address-guard.ts";
import type { ResolverObserver } from "../resolvers/measured.ts";
import type { RunObserver } from "../runner/run.ts";
import { storeMethods, type StoreObserver } from "../stores/measured.ts";
import type { TaskStore } from "../stores/store.ts";
import { states } from "../model/task.ts";
import type { DeliveryObserver } from "../webhooks/deliver.ts";

export interface MetricsOptions {
  /** Its tasks and messages are counted. */
  store: Pick<TaskStore, "count" | "outbox">;
  /** Its free space is told. */
  files: Pick<FileStore, "freeBytes">;
  /** Default: the system's clock. */
  now?: () => Date;
}

/** Observes the parts of a process, and tells what it saw. */
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
  const { store, files, now = () => new Date() } = options;
  const registry = new Registry();
  const registers = [registry];

  const requests = createRequestMetrics(registry);
  const servedBytes = new Counter({
    name: "unreel_file_served_bytes_total",
    help: "Bytes of tasks' files that were sent",
    registers,
  });
  const storeSeconds = createDurations(
    "unreel_store_call_duration_seconds",
    "Time of calls of the task store",
    [0.001, 0.005, 0.025, 0.1, 1],
  );
  const storeSeries = new Map(
    storeMethods.map((method) => [method, storeSeconds.series({ method })]),
  );
  const storeFailures = new Counter({
    name: "unreel_store_failures_total",
    help: "Calls of the task store that failed because it is unavailable or damaged",
    labelNames: ["method"],
    registers,
  });
  const resolverSeconds = new Histogram({
    name: "unreel_resolver_duration_seconds",
    help: "Time to read a page, by resolver; auto asks the others",
    labelNames: ["resolver", "outcome"],
    buckets: [0.1, 0.5, 2, 5, 15],
    registers,
  });
  const blocked = new Counter({
    name: "unreel_blocked_addresses_total",
    help: "Connections that were refused because their address is not public",
    labelNames: ["reason"],
    registers,
  });
  const runsStarted = new Counter({
    name: "unreel_runs_started_total",
    help: "Runs of tasks that this process started, one per attempt unless a worker dies",
    registers,
  });
  const running = new Gauge({
    name: "unreel_runs_active",
    help: "Runs of tasks in this process now",
    registers,
  });
  const runs = new Counter({
    name: "unreel_runs_ended_total",
    help: "Ended runs by outcome, and by error code if they failed or are retried",
    labelNames: ["outcome", "code"],
    registers,
  });
  const runSeconds = new Histogram({
    name: "unreel_run_duration_seconds",
    help: "Time of runs",
    buckets: [1, 5, 15, 60, 300, 1_800, 7_200],
    registers,
  });
  const downloadedBytes = new Counter({
    name: "unreel_downloaded_bytes_total",
    help: "Bytes of media that downloads have received",
    registers,
  });
  const engineProcesses = new Gauge({
    name: "unreel_engine_processes",
    help: "Worker processes of the download engine now",
    registers,
  });
  const engineDeaths = new Counter({
    name: "unreel_engine_deaths_total",
    help: "Worker processes that ended during a download: crashed, or killed at a limit",
    labelNames: ["cause"],
    registers,
  });
  addTaskMetrics(registers, store, now);
  addDiskMetrics(registers, files);
  addProcessMetrics(registry);

  function onBlocked(reason: string): void {
    blocked.inc({ reason: blockReasons.includes(reason) ? reason : "other" });
  }

  return {
    contentType: registry.contentType,
    read: async () => [await registry.metrics(), requests.text(), storeSeconds.text()].join("\n"),
    onBlocked,
    app: {
      onBlocked,
      onFileBytes: (bytes) => servedBytes.inc(bytes),
      onRequest: requests.observe,
    },
    engine: {
      onBlocked,
      onProcesses: (count) => engineProcesses.set(count),
      onDeath: (cause) => engineDeaths.inc({ cause }),
    },
    run: {
      onStart() {
        runsStarted.inc();
        running.inc();
      },
      onBytes: (bytes) => downloadedBytes.inc(bytes),
      onEnd({ kind, code = "" }, seconds) {
        running.dec();
        runs.inc({ outcome: kind, code: code in errorCodes ? code : "" });
        runSeconds.observe(seconds);
      },
    },
    onResolved: (resolver, outcome, seconds) =>
      resolverSeconds.observe({ resolver, outcome }, seconds),
    onStoreCall(method, seconds, hasFailed) {
      storeSeries.get(method)?.observe(seconds);
      if (hasFailed) storeFailures.inc({ method });
    },
    webhooks: createWebhookMetrics(registry, store.outbox),
  };
}

/** Adds what the store tells of all tasks, those of other processes included. */
function addTaskMetrics(
  registers: Registry[],
  store: Pick<TaskStore, "count">,
  now: () => Date,
): void {
  const readCounts = createTimelyRead(() => store.count());
  const tasks: Gauge<"state"> = new Gauge({
    name: "unreel_tasks",
    help: "Tasks in the store by state; of a shared store, each process tells the same",
    labelNames: ["state"],
    registers,
    async collect() {
      const counts = await readCounts();
      tasks.reset();
      if (counts === undefined) return;
      for (const state of states) tasks.set({ state }, counts.byState[state]);
    },
  });
  const oldest: Gauge = new Gauge({
    name: "unreel_oldest_queued_task_age_seconds",
    help: "Time since the oldest queued task was created, 0 if none is queued",
    registers,
    async collect() {
      const counts = await readCounts();
      if (counts === undefined) return oldest.remove();
      const { oldestQueuedAt } = counts;
      const ageMs = oldestQueuedAt === null ? 0 : now().getTime() - Date.parse(oldestQueuedAt);
      return oldest.set(Math.max(0, ageMs / 1000));
    },
  });
}

function addDiskMetrics(registers: Registry[], files: MetricsOptions["files"]): void {
  const readFreeBytes = createTimelyRead(() => files.freeBytes());
  const free: Gauge = new Gauge({
    name: "unreel_disk_free_bytes",
    help: "Free space on the disk of DATA_DIR",
    registers,
    async collect() {
      const bytes = await readFreeBytes();
      if (bytes === undefined) free.remove();
      else free.set(bytes);
    },
  });
}
