import type { Claim } from "./stores/store.ts";
import { hostOf } from "./stores/rules.ts";
import type { TaskChanged, TaskEvents } from "./task-events.ts";
import { Interruption } from "./runner/interruption.ts";
import { createLeftovers } from "./runner/leftovers.ts";
import { deleteExpired } from "./runner/retention.ts";
import { type RunParts, runTask } from "./runner/run.ts";
import { createTurns } from "./turns.ts";

export interface RunnerOptions extends Omit<RunParts, "leaseMs" | "now" | "random"> {
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

interface ActiveRun {
  id: string;
  host: string;
  controller: AbortController;
}

/**
 * Runs the tasks of the store: the oldest first, as many at a time as `concurrency` and `perHost` allow,
 * each as soon as it is queued. What a failure means is judged by `judgeFailure`, what stays on the disk
 * by `createLeftovers`. A store that fails is asked again; nothing is thrown.
 */
export function createRunner(options: RunnerOptions): Runner {
  const { store, events, files, logger, concurrency, perHost, retentionS = 0 } = options;
  const { leaseMs = 30_000, now = () => new Date(), random = Math.random } = options;
  const parts: RunParts = { ...options, leaseMs, now, random };
  const turns = createTurns();
  const leftovers = createLeftovers({ store, files, turns, logger });
  const runs = new Set<ActiveRun>();
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
        const claim = await claimNext();
        if (claim === undefined) break;
        launch(claim);
      }
    }
    isFilling = false;
  }

  async function claimNext(): Promise<Claim | undefined> {
    try {
      return await store.claim({ leaseMs, exceptHosts: fullHosts() });
    } catch (err) {
      logger.error({ err }, "no task could be claimed");
      return undefined;
    }
  }

  function fullHosts(): string[] {
    const byHost = Object.groupBy(runs, ({ host }) => host);
    return Object.keys(byHost).filter((host) => (byHost[host]?.length ?? 0) >= perHost);
  }

  function launch(claim: Claim): void {
    const { id, url } = claim.task;
    interrupt(id, "taken");
    const run = { id, host: hostOf(url), controller: new AbortController() };
    runs.add(run);
    if (life.signal.aborted) interrupt(id, "stopping");
    void turns
      .take(id, () => runTask(claim, run.host, parts, run.controller))
      .catch((err: unknown) => logger.error({ task: id, err }, "a run broke off"))
      .finally(() => {
        runs.delete(run);
        wake();
      });
  }

  /** Ends the runs of the task, or all. */
  function interrupt(id: string | undefined, kind: Interruption["kind"]): void {
    for (const run of runs) {
      if (id === undefined || run.id === id) run.controller.abort(new Interruption(kind));
    }
  }

  function follow(change: TaskChanged): void {
    const { id } = change.task;
    const state = change.type === "task" ? change.task.state : "deleted";
    if (state === "queued") wake();
    if (state === "canceled" || state === "deleted") interrupt(id, "taken");
    if (state === "canceled" || state === "deleted" || state === "failed") void leftovers.tidy(id);
  }

  async function halt(finish: () => Promise<void>): Promise<void> {
    life.abort();
    interrupt(undefined, "stopping");
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
