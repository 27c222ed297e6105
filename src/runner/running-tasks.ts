import type { BaseLogger } from "pino";
import { untilAborted } from "../async/deadline.ts";
import type { KeyedMutex } from "../async/keyed-mutex.ts";
import { hostOf } from "../model/task.ts";
import type { Claim, TaskStore } from "../stores/store.ts";
import { isSuspect, type TaskRun } from "./run.ts";
import { Interruption, startTaskLease } from "./task-lease.ts";

/** The runs of this process. */
export interface RunningTasks {
  /** Whether one more may begin. */
  hasFreeSlot(): boolean;
  /** Returns the hosts of which no more tasks may run. */
  fullHosts(): string[];
  /** Returns the runs of a task: more than one if it was claimed again before its earlier run has ended. */
  of(id: string): TaskRun[];
  /** Starts to run a claimed task; `sinceMs` is when the claim was requested, by `performance.now()`. */
  launch(claim: Claim, sinceMs: number): void;
}

export interface RunningTasksOptions {
  store: TaskStore;
  /** Tasks that run at a time. */
  concurrency: number;
  /** Tasks of one host that run at a time. */
  perHost: number;
  /** Of a store that does not have a length of its own. */
  leaseMs: number;
  /** Runs of one task follow one another. */
  mutex: KeyedMutex;
  logger: Pick<BaseLogger, "error">;
  /** Once it is aborted, all runs are interrupted, and those that are launched later. */
  signal: AbortSignal;
  runTask(run: TaskRun): Promise<void>;
  /** Called when there may be a slot again. */
  onFreeSlot(): void;
}

/** A task that was running when its worker died runs alone until it has more bytes than it had then. */
export function createRunningTasks(options: RunningTasksOptions): RunningTasks {
  const { store, concurrency, perHost, leaseMs, mutex, logger, signal } = options;
  const { runTask, onFreeSlot } = options;
  /** Each with a promise that resolves once it has ended. */
  const runs = new Map<TaskRun, Promise<void>>();
  /** Runs that run alone: while there is one, no other may begin. */
  const exclusive = new Set<TaskRun>();

  signal.addEventListener("abort", () => {
    for (const { controller } of runs.keys()) controller.abort(new Interruption("shutdown"));
  });

  const of = (id: string) => [...runs.keys()].filter(({ claim }) => claim.task.id === id);

  function open(claim: Claim, sinceMs: number): TaskRun {
    const [controller, finish] = [new AbortController(), new AbortController()];
    const lease = { claim, store, leaseMs: claim.leaseMs ?? leaseMs, sinceMs };
    const run: TaskRun = {
      claim,
      host: hostOf(claim.task.url),
      taskLease: startTaskLease({ ...lease, run: controller, finish }),
      controller,
      finish,
      onProgress() {
        if (exclusive.delete(run)) onFreeSlot();
      },
    };
    return run;
  }

  function end(run: TaskRun): void {
    run.taskLease.release();
    runs.delete(run);
    exclusive.delete(run);
    onFreeSlot();
  }

  return {
    of,
    hasFreeSlot: () => runs.size < concurrency && exclusive.size === 0,
    fullHosts: () => hostsOfMany(runs.keys(), perHost),
    launch(claim, sinceMs) {
      const { id } = claim.task;
      for (const { controller } of of(id)) controller.abort(new Interruption("leaseLost"));
      const run = open(claim, sinceMs);
      const others = isSuspect(claim) ? [...runs.values()] : [];
      if (isSuspect(claim)) exclusive.add(run);
      if (signal.aborted) run.controller.abort(new Interruption("shutdown"));
      const ended = mutex
        .runExclusive(id, async () => {
          await untilAborted(Promise.allSettled(others), run.controller.signal).catch(() => {});
          await runTask(run);
        })
        .catch((err: unknown) => logger.error({ task: id, err }, "unexpected error in a run"))
        .finally(() => end(run));
      runs.set(run, ended);
    },
  };
}

/** Returns the hosts of at least `least` of the runs. */
function hostsOfMany(runs: Iterable<TaskRun>, least: number): string[] {
  const byHost = Object.groupBy(runs, ({ host }) => host);
  return Object.keys(byHost).filter((host) => (byHost[host]?.length ?? 0) >= least);
}
