import type { TaskStore } from "./stores/store.ts";
import { hostOf } from "./stores/rules.ts";
import type { TaskChanged, TaskEvents } from "./task-events.ts";
import { holdTask } from "./runner/held-task.ts";
import { Interruption } from "./runner/interruption.ts";
import { createLeftovers } from "./runner/leftovers.ts";
import { logOutages } from "./runner/outage.ts";
import { deleteExpired } from "./runner/retention.ts";
import { type Run, type RunParts, runTask } from "./runner/run.ts";
import { createTurns } from "./turns.ts";

export interface RunnerOptions extends Omit<RunParts, "now" | "random"> {
  store: TaskStore;
  /** The feed to which `store` publishes its changes. */
  events: TaskEvents;
  /** Tasks that run at a time; 0: none. */
  concurrency: number;
  /** Of these, tasks of one host. */
  perHost: number;
  /** How long a task is held without a heartbeat; default 30,000. */
  leaseMs?: number;
  /** Finished tasks are deleted with their files after this time; default 0: never. */
  retentionS?: number;
  /** Default: the system's clock. */
  now?: () => Date;
  /** 0 ≤ n < 1, spreads retries; default `Math.random`. */
  random?: () => number;
}

export interface Runner {
  /** Begins to run tasks, and removes the files of tasks that are gone; safe to call twice. */
  start(): void;
  /**
   * Puts what runs back to the queue, its attempt not counted, and resolves once nothing runs any more;
   * safe to call twice. Call it before the store is closed.
   */
  stop(): Promise<void>;
}

/** A task that waits is looked for at least so often. */
const pollMs = 1_000;

/**
 * Runs the tasks of the store: the oldest first, as many at a time as `concurrency` and `perHost` allow,
 * each as soon as it is queued. What a failure means is judged by `judgeFailure`, what stays on the disk
 * by `removeLeft`. A store that fails is asked again; nothing is thrown. Other processes may run tasks of the
 * same store, on the same files.
 */
export function createRunner(options: RunnerOptions): Runner {
  const { store, events, files, logger, concurrency, perHost, retentionS = 0 } = options;
  const { leaseMs = 30_000, now = () => new Date(), random = Math.random } = options;
  const parts: RunParts = { ...options, now, random };
  const turns = createTurns();
  const leftovers = createLeftovers({ store, files, turns, logger });
  const runs = new Set<Run>();
  const attemptClaim = logOutages(logger, {
    failed: "no task can be claimed; it is tried again each second",
    restored: "tasks can be claimed again",
  });
  const life = new AbortController();
  let end = async () => {};
  let isStarted = false;
  let stopped: Promise<void> | undefined;
  let isWanted = false;
  let isFilling = false;
  let filling: Promise<void> | undefined;

  /** Claims tasks for all free slots, once more if a claim is under way. */
  function wake(): void {
    isWanted = true;
    if (isFilling) return;
    isFilling = true;
    filling = fill();
  }

  async function fill(): Promise<void> {
    while (isWanted && !life.signal.aborted) {
      isWanted = false;
      while (runs.size < concurrency && !life.signal.aborted) {
        if (!(await launchNext())) break;
      }
    }
    isFilling = false;
  }

  /** `false` where there is no task to run. */
  async function launchNext(): Promise<boolean> {
    const sinceMs = performance.now();
    const claim = await attemptClaim(() => store.claim({ leaseMs, exceptHosts: fullHosts() }));
    if (claim === undefined) return false;
    const { id, url } = claim.task;
    for (const run of runsOf(id)) run.controller.abort(new Interruption("taken"));
    const controller = new AbortController();
    const lasts = claim.leaseMs ?? leaseMs;
    const held = holdTask({ claim, store, leaseMs: lasts, sinceMs, run: controller });
    launch({ claim, host: hostOf(url), held, controller });
    return true;
  }

  function fullHosts(): string[] {
    const byHost = Object.groupBy(runs, ({ host }) => host);
    return Object.keys(byHost).filter((host) => (byHost[host]?.length ?? 0) >= perHost);
  }

  function runsOf(id: string): Run[] {
    return [...runs].filter(({ claim }) => claim.task.id === id);
  }

  function launch(run: Run): void {
    const { id } = run.claim.task;
    runs.add(run);
    if (life.signal.aborted) run.controller.abort(new Interruption("stopping"));
    void turns
      .take(id, () => runTask(run, parts))
      .catch((err: unknown) => logger.error({ task: id, err }, "a run broke off"))
      .finally(() => {
        run.held.release();
        runs.delete(run);
        wake();
      });
  }

  function follow({ type, task }: TaskChanged): void {
    if (type === "task" && task.state === "queued") wake();
    if (type === "task" && task.state !== "canceled") return;
    // The news may be older than the run: only the store knows whether the task is taken from it.
    for (const { held } of runsOf(task.id)) void held.verify();
    void leftovers.tidy(task.id);
  }

  async function halt(finish: () => Promise<void>): Promise<void> {
    life.abort();
    for (const { controller } of runs) controller.abort(new Interruption("stopping"));
    await filling;
    await finish();
    await turns.settled();
  }

  return {
    start() {
      if (isStarted || stopped !== undefined) return;
      isStarted = true;
      const unsubscribe = events.subscribe(follow);
      const poll = setInterval(wake, pollMs);
      const { signal } = life;
      const chores = [leftovers.sweep(signal)];
      if (retentionS > 0)
        chores.push(deleteExpired({ store, files, retentionS, signal, logger, now }));
      end = async () => {
        clearInterval(poll);
        await Promise.all(chores);
        await turns.settled();
        unsubscribe();
      };
      wake();
    },
    stop: () => (stopped ??= halt(end)),
  };
}
