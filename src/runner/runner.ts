import { type ClockOptions, createClock } from "../stores/clock.ts";
import type { TaskStore } from "../stores/store.ts";
import type { TaskEvent } from "../feed/task-events.ts";
import { startTaskLease } from "./task-lease.ts";
import { Interruption } from "./interruption.ts";
import { createFileCleanup } from "./file-cleanup.ts";
import { createClaimLoop } from "../async/claim-loop.ts";
import { logOutages } from "../async/outages.ts";
import { deleteExpired } from "./retention.ts";
import { isSuspect, type TaskRun, type RunDeps, runTask } from "./run.ts";
import { createStorageLimit } from "./storage-limit.ts";
import { createKeyedMutex } from "../async/keyed-mutex.ts";
import { untilAborted } from "../async/deadline.ts";
import { hostOf } from "../model/task.ts";

export interface RunnerOptions extends Omit<RunDeps, "now" | "random" | "storage">, ClockOptions {
  store: TaskStore;
  /** Tasks that run at a time; 0: none. */
  concurrency: number;
  /** Tasks of one host that run at a time. */
  perHost: number;
  /** How long a lease lasts without a heartbeat; default 30,000. */
  leaseMs?: number;
  /** How long ended tasks and their files are kept; default 0: for ever. */
  retentionS?: number;
  /** How many bytes the files of all tasks may have together; default 0: any number. */
  maxStoredBytes?: number;
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

/** As it is written in the JSON of a task. */
const finishRequest = `"finish_requested":true`;

/**
 * Runs the tasks of the store: owners in turns, the oldest task of each first, as many at a time as
 * `concurrency` and `perHost` allow, each as soon as it is queued. A task that was running when its worker died
 * runs alone until it has more bytes than it had then.
 * `decideRetry` decides what a failure means, `removeUnneededFiles` what stays on the
 * disk. Store errors are logged and retried, never thrown. Other processes may run tasks of the same store on
 * the same files.
 */
export function createRunner(options: RunnerOptions): Runner {
  const { store, files, logger, concurrency, perHost, retentionS = 0 } = options;
  const { leaseMs = 30_000, random = Math.random, maxStoredBytes: maxBytes = 0 } = options;
  const clock = createClock(options);
  const storage = createStorageLimit({ store, files, maxBytes, logger });
  const deps: RunDeps = { ...options, storage, now: clock.now, random };
  const mutex = createKeyedMutex();
  const cleanup = createFileCleanup({ store, files, mutex, logger });
  /** The current runs, each with a promise that resolves once it has ended. */
  const runs = new Map<TaskRun, Promise<void>>();
  /** Runs beside which no other may begin. */
  const exclusive = new Set<TaskRun>();
  const attemptClaim = logOutages(logger, {
    failed: "claiming tasks failed; retrying every second",
    restored: "claiming tasks works again",
  });
  const stopping = new AbortController();
  let finish = async () => {};
  let isStarted = false;
  let stopped: Promise<void> | undefined;
  const { wake, onIdle } = createClaimLoop({
    hasFreeSlot: () => runs.size < concurrency && exclusive.size === 0,
    claimNext: launchNext,
    signal: stopping.signal,
  });

  /** Returns false if there is no task to run. */
  async function launchNext(): Promise<boolean> {
    const sinceMs = performance.now();
    const claim = await attemptClaim(() => store.claim({ leaseMs, exceptHosts: fullHosts() }));
    if (claim === undefined) return false;
    const { id, url } = claim.task;
    for (const run of runsOf(id)) run.controller.abort(new Interruption("leaseLost"));
    const controller = new AbortController();
    const ending = new AbortController();
    const taskLease = startTaskLease({
      claim,
      store,
      leaseMs: claim.leaseMs ?? leaseMs,
      sinceMs,
      run: controller,
      finish: ending,
    });
    const run: TaskRun = {
      claim,
      host: hostOf(url),
      taskLease,
      controller,
      finish: ending,
      onProgress() {
        if (exclusive.delete(run)) wake();
      },
    };
    launch(run);
    return true;
  }

  function fullHosts(): string[] {
    const byHost = Object.groupBy(runs.keys(), ({ host }) => host);
    return Object.keys(byHost).filter((host) => (byHost[host]?.length ?? 0) >= perHost);
  }

  function runsOf(id: string): TaskRun[] {
    return [...runs.keys()].filter(({ claim }) => claim.task.id === id);
  }

  function launch(run: TaskRun): void {
    const { id } = run.claim.task;
    const others = isSuspect(run.claim) ? [...runs.values()] : [];
    if (isSuspect(run.claim)) exclusive.add(run);
    if (stopping.signal.aborted) run.controller.abort(new Interruption("shutdown"));
    const ended = mutex
      .runExclusive(id, async () => {
        await untilAborted(Promise.allSettled(others), run.controller.signal).catch(() => {});
        await runTask(run, deps);
      })
      .catch((err: unknown) => logger.error({ task: id, err }, "unexpected error in a run"))
      .finally(() => {
        run.taskLease.release();
        runs.delete(run);
        exclusive.delete(run);
        wake();
      });
    runs.set(run, ended);
  }

  function follow({ type, taskId, state, json }: TaskEvent): void {
    if (state === "queued") wake();
    if (state === "running") {
      for (const run of runsOf(taskId)) {
        // The event may be older than the run: the store knows what is asked of this one.
        const isAsked = !run.finish.signal.aborted && json.includes(finishRequest);
        if (isAsked) void run.taskLease.checkFinish();
      }
    }
    if (type !== "deleted" && state !== "canceled") return;
    // The event may be older than the run: only the store knows whether the lease is lost.
    for (const { taskLease } of runsOf(taskId)) void taskLease.renew();
    void cleanup.cleanUp(taskId);
  }

  async function halt(): Promise<void> {
    stopping.abort();
    for (const { controller } of runs.keys()) controller.abort(new Interruption("shutdown"));
    await onIdle();
    await finish();
    await mutex.onIdle();
  }

  return {
    start() {
      if (isStarted || stopped !== undefined) return;
      isStarted = true;
      const unsubscribe = store.events.subscribe(follow);
      const poll = setInterval(wake, pollMs);
      const { signal } = stopping;
      const background = [cleanup.cleanUpAll(signal), storage.hold(signal)];
      if (retentionS > 0)
        background.push(deleteExpired({ store, files, retentionS, signal, logger, clock }));
      finish = async () => {
        clearInterval(poll);
        await Promise.all(background);
        await mutex.onIdle();
        unsubscribe();
      };
      wake();
    },
    stop: () => (stopped ??= halt()),
  };
}
