import { type ClockOptions, createClock } from "../stores/clock.ts";
import type { TaskEvent } from "../feed/task-events.ts";
import { createFileCleanup, type FileCleanup } from "./file-cleanup.ts";
import { type ClaimLoop, createClaimLoop } from "../async/claim-loop.ts";
import { deleteExpired } from "./retention.ts";
import { type RunDeps, runTask } from "./run.ts";
import { isActive } from "../model/task.ts";
import { createRunningTasks, type RunLimits, type RunningTasks } from "./running-tasks.ts";
import { createStorageLimit, PartialDownloads } from "./storage-limit.ts";
import { createKeyedMutex } from "../async/keyed-mutex.ts";

export interface RunnerOptions
  extends Omit<RunDeps, "now" | "random" | "storage" | "mutex" | "partials">, RunLimits, ClockOptions {
  /** How long ended tasks and their files are kept; 0: for ever. */
  retentionS: number;
  /** How many bytes the files of all tasks may have together; 0: any number. */
  maxStoredBytes: number;
  /** As in `createFileCleanup`. */
  retryMs?: number;
  /** Returns 0 ≤ n < 1, to spread retries; default `Math.random`. */
  random?: () => number;
}

export interface Runner {
  /** Starts to run tasks and removes the files of deleted tasks; safe to call twice. */
  start(): void;
  /**
   * Requeues the running tasks without counting the attempt, and resolves once nothing runs any more; safe
   * to call twice. Call it before the store is closed.
   */
  stop(): Promise<void>;
}

/** Interval of claims without an event: a delayed retry becomes due, another worker dies. */
const pollMs = 1_000;

/**
 * Runs the tasks of the store: owners in turns, the oldest task of each first, as many at a time as
 * `concurrency` and `perHost` allow, each as soon as it is queued. `readInTurn` decides what the death of a worker means,
 * `decideRetry` decides what a failure means, `removeUnneededFiles` what stays on the
 * disk. Store errors are logged and retried, never thrown. Other processes may run tasks of the same store on
 * the same files.
 */
export function createRunner(options: RunnerOptions): Runner {
  const { store, files, logger, retentionS, maxStoredBytes: maxBytes, retryMs, random = Math.random } = options;
  const clock = createClock(options);
  const storage = createStorageLimit({ store, files, maxBytes, logger });
  const mutex = createKeyedMutex();
  const partials = new PartialDownloads();
  const deps: RunDeps = { ...options, storage, mutex, partials, now: clock.now, random };
  const cleanup = createFileCleanup({ store, files, mutex, logger, retryMs });
  const stopping = new AbortController();
  const runs = createRunningTasks({
    ...options,
    mutex,
    signal: stopping.signal,
    runTask: (run) => runTask(run, deps),
    onFreeSlot: () => claims.wake(),
  });
  const claims = createClaimLoop({ ...runs, signal: stopping.signal });
  /** Ends what `start` has started; undefined: nothing was. */
  let finish: (() => Promise<void>) | undefined;
  let stopped: Promise<void> | undefined;

  async function halt(): Promise<void> {
    stopping.abort();
    await claims.onIdle();
    await finish?.();
    await mutex.onIdle();
  }

  return {
    start() {
      if (finish !== undefined || stopped !== undefined) return;
      const unsubscribe = store.events.subscribe((event) => {
        follow(event, claims, runs, cleanup);
        if (!mayResume(event)) partials.forget({ id: event.taskId, owner: event.owner });
      });
      const poll = setInterval(claims.wake, pollMs);
      const { signal } = stopping;
      const background = [
        cleanup.run(signal),
        storage.hold(signal),
        deleteExpired({ store, files, retentionS, signal, logger, clock }),
      ];
      finish = async () => {
        clearInterval(poll);
        await Promise.all(background);
        await mutex.onIdle();
        unsubscribe();
      };
      claims.wake();
    },
    stop: () => (stopped ??= halt()),
  };
}

/** Whether there may be a partial download of the task. */
function mayResume({ state, isRetryable }: TaskEvent): boolean {
  return isRetryable || (state !== undefined && isActive(state));
}

/** Asks the store, which knows what holds for a run: the event may be older than it. */
function follow(
  { type, taskId, owner, state, isFinishRequested }: TaskEvent,
  claims: ClaimLoop,
  runs: RunningTasks,
  cleanup: FileCleanup,
): void {
  if (state === "queued") claims.wake();
  if (isFinishRequested) {
    for (const { taskLease, finish } of runs.of(taskId)) if (!finish.signal.aborted) void taskLease.checkFinish();
  }
  if (type !== "deleted" && state !== "canceled") return;
  for (const { taskLease } of runs.of(taskId)) void taskLease.renew();
  void cleanup.cleanUp(taskId, owner);
}
