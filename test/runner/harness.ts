import { onTestFinished } from "vitest";
import type { Engine } from "../../src/engines/engine.ts";
import type { FileStore } from "../../src/files/files.ts";
import { createRunner, type Runner, type RunnerOptions } from "../../src/runner.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { publishChanges } from "../../src/stores/publish-changes.ts";
import { createTaskEvents, type TaskEvent, type TaskEvents } from "../../src/task-events.ts";
import type { Task, TaskOptions } from "../../src/task.ts";
import { newTask } from "../../src/task-changes.ts";
import { createTestEngine, type Downloads } from "./engine.ts";
import { createTestFiles, type TestFiles } from "./files.ts";
import { createTestResolver } from "./resolver.ts";

export interface RunnerHarness {
  store: TaskStore;
  /** The runner's feed. */
  events: TaskEvents;
  runner: Runner;
  files: TestFiles;
  engine: Engine;
  log: Record<string, unknown>[];
  /** All changes so far. */
  changes: readonly TaskEvent[];
  add: (url?: string, options?: TaskOptions) => Promise<Task>;
  /** The first change of the task, past or to come, that brought it into a state or was as told. */
  until: (id: string, wanted: Task["state"] | ((task: Task) => boolean)) => Promise<Task>;
  /** The first change that shows bytes on the disk. */
  untilLoading: (id: string) => Promise<Task>;
  states: (id: string) => Task["state"][];
}

export type SceneOptions = Partial<Omit<RunnerOptions, "store" | "events" | "files" | "logger">> & {
  store?: TaskStore;
  files?: FileStore;
  downloads?: Downloads | undefined;
};

/** A runner with a memory store and parts that do as told; ended behind the test. */
export function createRunnerHarness({
  store: given,
  downloads,
  ...options
}: SceneOptions = {}): RunnerHarness {
  const events = createTaskEvents();
  const now = options.now ?? (() => new Date());
  const store = publishChanges(given ?? createMemoryStore({ now }), events);
  const files = createTestFiles();
  const engine = options.engine ?? createTestEngine(downloads);
  const changes: TaskEvent[] = [];
  const waiters = new Set<() => void>();
  events.subscribe((change) => {
    changes.push(structuredClone(change));
    for (const waiter of waiters) waiter();
  });
  const log: Record<string, unknown>[] = [];
  const write = (fields: object, msg: string) => void log.push({ ...fields, msg });
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
    random: () => 0,
    ...options,
    engine,
    store,
    events,
    files: options.files ?? files,
    logger: { info: write, warn: write, error: write } as RunnerOptions["logger"],
  });
  onTestFinished(async () => {
    await runner.stop();
    await store.close();
    files.destroy();
  });

  function tasksOf(id: string): Task[] {
    return changes.flatMap((change) =>
      change.type === "task" && change.task.id === id ? [change.task] : [],
    );
  }

  function until(id: string, wanted: Task["state"] | ((task: Task) => boolean)): Promise<Task> {
    const suits = typeof wanted === "function" ? wanted : ({ state }: Task) => state === wanted;
    const { promise, resolve } = Promise.withResolvers<Task>();
    const look = () => {
      const found = tasksOf(id).find(suits);
      if (found === undefined) return;
      waiters.delete(look);
      resolve(found);
    };
    waiters.add(look);
    look();
    return promise;
  }

  return {
    store,
    events,
    runner,
    files,
    engine,
    log,
    changes,
    add: (url = "https://video.example.com/watch", taskOptions = {}) =>
      store.create(newTask(url, taskOptions, now())),
    until,
    untilLoading: (id) => until(id, ({ progress }) => (progress?.downloaded_bytes ?? 0) > 0),
    states: (id) =>
      tasksOf(id)
        .map(({ state }) => state)
        .filter((state, at, all) => state !== all[at - 1]),
  };
}
