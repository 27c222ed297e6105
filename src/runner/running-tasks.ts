import type { BaseLogger } from "pino";
import type { KeyedMutex } from "../async/keyed-mutex.ts";
import { logOutages } from "../async/outages.ts";
import { hostOf } from "../model/url-parts.ts";
import type { Claim, TaskStore } from "../stores/store.ts";
import type { TaskRun } from "./run.ts";
import { Interruption, startTaskLease } from "./task-lease.ts";

/** Which tasks run, and how many. */
export interface RunLimits {
  store: TaskStore;
  /** Tasks that run at a time; 0: none. */
  concurrency: number;
  /** Tasks of one host that run at a time. */
  perHost: number;
  /** Hosts that are left alone: no task of theirs begins. */
  pausedHosts: () => readonly string[];
  /** How long a lease lasts without a heartbeat; default 30,000. */
  leaseMs?: number;
}

interface RunningTasksOptions extends RunLimits {
  /** Runs of one task follow one another. */
  mutex: KeyedMutex;
  logger: Pick<BaseLogger, "error" | "info">;
  /** Once it is aborted, all runs are interrupted, and those that begin later. */
  signal: AbortSignal;
  runTask(run: TaskRun): Promise<void>;
  /** Called when there may be a slot again. */
  onFreeSlot(): void;
}

export type RunningTasks = ReturnType<typeof createRunningTasks>;

/** Creates the runs of this process. */
export function createRunningTasks(options: RunningTasksOptions) {
  const { store, concurrency, perHost, leaseMs = 30_000, mutex, logger, signal } = options;
  const { runTask, onFreeSlot, pausedHosts } = options;
  /** Each with a promise that resolves once it has ended. */
  const runs = new Map<TaskRun, Promise<void>>();
  const attempt = logOutages(logger, {
    failed: "claiming tasks failed; retrying every second",
    restored: "claiming tasks works again",
  });
  const interrupt = (run: TaskRun) => run.controller.abort(new Interruption("shutdown"));
  signal.addEventListener("abort", () => runs.keys().forEach(interrupt));

  /** Returns the runs of a task: more than one if it was claimed again before its earlier run has ended. */
  const of = (id: string): TaskRun[] => [...runs.keys()].filter(({ claim }) => claim.task.id === id);

  function launch(run: TaskRun): void {
    const { id } = run.claim.task;
    if (signal.aborted) interrupt(run);
    const ended = mutex
      .runExclusive(id, () => runTask(run))
      .catch((err: unknown) => logger.error({ task: id, err }, "unexpected error in a run"))
      .finally(() => {
        run.taskLease.release();
        runs.delete(run);
        onFreeSlot();
      });
    runs.set(run, ended);
  }

  return {
    of,
    /** Whether one more may begin. */
    hasFreeSlot: () => runs.size < concurrency,
    /** Claims a task and starts to run it; false if there is none to run. Never rejects. */
    async claimNext(): Promise<boolean> {
      const sinceMs = performance.now();
      const exceptHosts = [...hostsOfMany(runs.keys(), perHost), ...pausedHosts()];
      const claim = await attempt(() => store.claim({ leaseMs, exceptHosts }));
      if (claim === undefined) return false;
      for (const { controller } of of(claim.task.id)) controller.abort(new Interruption("leaseLost"));
      const lease = { claim, store, leaseMs: claim.leaseMs ?? leaseMs, sinceMs };
      launch(openRun(lease));
      return true;
    },
  };
}

/** Returns the hosts of at least `least` of the runs. */
function hostsOfMany(runs: Iterable<TaskRun>, least: number): string[] {
  const byHost = Object.groupBy(runs, ({ host }) => host);
  return Object.keys(byHost).filter((host) => (byHost[host]?.length ?? 0) >= least);
}

function openRun(lease: { claim: Claim; store: TaskStore; leaseMs: number; sinceMs: number }): TaskRun {
  const [controller, finish] = [new AbortController(), new AbortController()];
  const taskLease = startTaskLease({ ...lease, run: controller, finish });
  const { claim } = lease;
  return { claim, host: hostOf(claim.task.url), taskLease, controller, finish };
}
