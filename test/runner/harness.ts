import { onTestFinished, vi } from "vitest";
import type { Engine } from "../../src/engines/engine.ts";
import type { FileStore } from "../../src/files/files.ts";
import { createRunner, type Runner, type RunnerOptions } from "../../src/runner/runner.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import type { Task, TaskOptions } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { createTestLog, type LogLine } from "../log.ts";
import { createTestEngine, type Downloads } from "./engine.ts";
import { createTestFiles, type TestFiles } from "./files.ts";
import { createTestResolver } from "./resolver.ts";

export interface RunnerHarness {
  store: TaskStore;
  runner: Runner;
  files: TestFiles;
  engine: Engine;
  log: LogLine[];
  /** The tasks after each change so far. */
  changes: readonly Task[];
  add: (url?: string, options?: TaskOptions) => Promise<Task>;
  /** Resolves to the task after its first change, past or future, that meets the condition. */
  until: (id: string, wanted: Task["state"] | ((task: Task) => boolean)) => Promise<Task>;
  /** Resolves after the first change with downloaded bytes. */
  untilLoading: (id: string) => Promise<Task>;
  /** Adds a task and starts the runner; resolves as `until` does. */
  run: (wanted: Parameters<RunnerHarness["until"]>[1], ...task: Parameters<RunnerHarness["add"]>) => Promise<Task>;
  /** Adds a task and starts the runner; resolves as `untilLoading` does. */
  startLoading: (...task: Parameters<RunnerHarness["add"]>) => Promise<Task>;
  states: (id: string) => Task["state"][];
}

/**
 * Stops the time of leases and heartbeats for the rest of the test: from now on `vi.advanceTimersByTimeAsync` moves it. To
 * be called after the harness is created.
 */
export function stopTime(): void {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"],
  });
  onTestFinished(() => void vi.useRealTimers());
}

export type RunnerHarnessOptions = Partial<Omit<RunnerOptions, "store" | "files" | "logger">> & {
  store?: TaskStore;
  files?: FileStore;
  downloads?: Downloads | undefined;
};

/** Creates a runner with a memory store and test doubles, stopped after the test. */
export function createRunnerHarness({ downloads, ...options }: RunnerHarnessOptions = {}): RunnerHarness {
  const now = options.now ?? (() => new Date());
  const store = options.store ?? createMemoryStore({ now });
  const files = createTestFiles();
  const engine = options.engine ?? createTestEngine(downloads);
  const changes: Task[] = [];
  /** Those of each task, for what waits for one looks at its own alone. */
  const histories = new Map<string, Task[]>();
  const changesOf = (id: string) => histories.getOrInsertComputed(id, () => []);
  const waiters = new Set<(changed: string) => void>();
  store.events.subscribe(({ type, taskId, json }) => {
    if (type === "task") {
      // Events leave `info` out while it is the same.
      const history = changesOf(taskId);
      const task: Task = { info: history.at(-1)?.info, ...JSON.parse(json) };
      history.push(task);
      changes.push(task);
      for (const waiter of waiters) waiter(taskId);
    }
  });
  const { log, logger } = createTestLog();
  const runner = createRunner({
    resolver: createTestResolver(),
    concurrency: 2,
    perHost: 2,
    maxAttempts: 3,
    backoffMs: 0,
    runTimeoutMs: 60_000,
    maxFileBytes: 1e9,
    minFreeBytes: 1,
    maxLiveS: 60,
    maxEntries: 10_000,
    retentionS: 0,
    maxStoredBytes: 0,
    pausedHosts: () => [],
    findSkips: async () => [],
    random: () => 0,
    ...options,
    engine,
    store,
    files: options.files ?? files,
    logger,
  });
  onTestFinished(async () => {
    await runner.stop();
    await store.close();
  });

  function until(id: string, wanted: Task["state"] | ((task: Task) => boolean)): Promise<Task> {
    const suits = typeof wanted === "function" ? wanted : ({ state }: Task) => state === wanted;
    const { promise, resolve } = Promise.withResolvers<Task>();
    const look = (changed: string) => {
      const found = changed === id ? changesOf(id).find(suits) : undefined;
      if (found === undefined) return;
      waiters.delete(look);
      resolve(found);
    };
    waiters.add(look);
    look(id);
    return promise;
  }

  const isLoading = ({ progress }: Task) => (progress?.downloaded_bytes ?? 0) > 0;
  const add: RunnerHarness["add"] = (url = "https://video.example.com/watch", taskOptions = {}) =>
    store.create(newTask(url, taskOptions, now()));
  const run: RunnerHarness["run"] = async (wanted, ...task) => {
    const { id } = await add(...task);
    runner.start();
    return until(id, wanted);
  };
  return {
    store,
    runner,
    files,
    engine,
    log,
    changes,
    add,
    until,
    untilLoading: (id) => until(id, isLoading),
    run,
    startLoading: (...task) => run(isLoading, ...task),
    states: (id) =>
      changesOf(id)
        .map(({ state }) => state)
        .filter((state, at, all) => state !== all[at - 1]),
  };
}
