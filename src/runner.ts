import type { TaskStore } from "./stores/store.ts";
import type { TaskEvent, TaskEvents } from "./task-events.ts";
import { startTaskLease } from "./runner/task-lease.ts";
import { Interruption } from "./runner/interruption.ts";
import { createFileCleanup } from "./runner/file-cleanup.ts";
import { logOutages } from "./runner/outage.ts";
import { deleteExpired } from "./runner/retention.ts";
import { type TaskRun, type RunDeps, runTask } from "./runner/run.ts";
import { createKeyedMutex } from "./keyed-mutex.ts";
import { hostOf } from "./task.ts";

export interface RunnerOptions extends Omit<RunDeps, "now" | "random"> {
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
  const parts: RunDeps = { ...options, now, random };
  const mutex = createKeyedMutex();
  const cleanup = createFileCleanup({ store, files, mutex, logger });
  const runs = new Set<TaskRun>();
  const attemptClaim = logOutages(logger, {
    failed: "claiming tasks failed; retrying every second",
    restored: "claiming tasks works again",
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
    for (const run of runsOf(id)) run.controller.abort(new Interruption("leaseLost"));
    const controller = new AbortController();
    const lasts = claim.leaseMs ?? leaseMs;
    const taskLease = startTaskLease({ claim, store, leaseMs: lasts, sinceMs, run: controller });
    launch({ claim, host: hostOf(url), taskLease, controller });
    return true;
  }

  function fullHosts(): string[] {
    const byHost = Object.groupBy(runs, ({ host }) => host);
    return Object.keys(byHost).filter((host) => (byHost[host]?.length ?? 0) >= perHost);
  }

  function runsOf(id: string): TaskRun[] {
    return [...runs].filter(({ claim }) => claim.task.id === id);
  }

  function launch(run: TaskRun): void {
    const { id } = run.claim.task;
    runs.add(run);
    if (life.signal.aborted) run.controller.abort(new Interruption("shutdown"));
    void mutex
      .runExclusive(id, () => runTask(run, parts))
      .catch((err: unknown) => logger.error({ task: id, err }, "unexpected error in a run"))
      .finally(() => {
        run.taskLease.release();
        runs.delete(run);
        wake();
      });
  }

  function follow({ type, task }: TaskEvent): void {
    if (type === "task" && task.state === "queued") wake();
    if (type === "task" && task.state !== "canceled") return;
    // The news may be older than the run: only the store knows whether the task is taken from it.
    for (const { taskLease } of runsOf(task.id)) void taskLease.renew();
    void cleanup.cleanUp(task.id);
  }

  async function halt(finish: () => Promise<void>): Promise<void> {
    life.abort();
    for (const { controller } of runs) controller.abort(new Interruption("shutdown"));
    await filling;
    await finish();
    await mutex.onIdle();
  }

  return {
    start() {
      if (isStarted || stopped !== undefined) return;
      isStarted = true;
      const unsubscribe = events.subscribe(follow);
      const poll = setInterval(wake, pollMs);
      const { signal } = life;
      const chores = [cleanup.cleanUpAll(signal)];
      if (retentionS > 0)
        chores.push(deleteExpired({ store, files, retentionS, signal, logger, now }));
      end = async () => {
        clearInterval(poll);
        await Promise.all(chores);
        await mutex.onIdle();
        unsubscribe();
      };
      wake();
    },
    stop: () => (stopped ??= halt(end)),
  };
}
