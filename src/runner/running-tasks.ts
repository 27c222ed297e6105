import type { BaseLogger } from "pino";
import type { KeyedMutex } from "../async/keyed-mutex.ts";
import { logOutages } from "../async/outages.ts";
import { hostOf } from "../model/url-parts.ts";
import type { ClaimExceptions } from "../stores/rules.ts";
import type { Claim, TaskStore } from "../stores/store.ts";
import { Interruption, startTaskLease, type TaskRun } from "./task-lease.ts";

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
  const runs = new Set<TaskRun>();
  const attempt = logOutages(logger, {
    failed: "claiming tasks failed; retrying every second",
    restored: "claiming tasks works again",
  });
  const interrupt = (run: TaskRun) => run.controller.abort(new Interruption("shutdown"));
  signal.addEventListener("abort", () => runs.forEach(interrupt));

  /** Returns the runs of a task: more than one if it was claimed again before its earlier run has ended. */
  const of = (id: string): TaskRun[] => [...runs].filter(({ claim }) => claim.task.id === id);

  function launch(run: TaskRun): void {
    const { id } = run.claim.task;
    if (signal.aborted) interrupt(run);
    runs.add(run);
    void mutex
      .runExclusive(id, () => runTask(run))
      .catch((err: unknown) => logger.error({ task: id, err }, "unexpected error in a run"))
      .finally(() => {
        run.taskLease.release();
        runs.delete(run);
        onFreeSlot();
      });
  }

  return {
    of,
    /** Whether one more may begin, if only of an owner that has none. */
    hasFreeSlot: () => runs.size < concurrency || hasSpare([...runs], concurrency),
    /** Claims a task and starts to run it; false if there is none to run. Never rejects. */
    async claimNext(): Promise<boolean> {
      let sinceMs = 0;
      let claim: Claim | undefined;
      for (const { exceptHosts, exceptOwners } of claimQueries([...runs], { concurrency, perHost })) {
        sinceMs = performance.now();
        const query = { leaseMs, exceptHosts: [...exceptHosts, ...pausedHosts()], exceptOwners };
        claim = await attempt(() => store.claim(query));
        if (claim !== undefined) break;
      }
      if (claim === undefined) return false;
      for (const { controller } of of(claim.task.id)) controller.abort(new Interruption("leaseLost"));
      const lease = { claim, store, leaseMs: claim.leaseMs ?? leaseMs, sinceMs };
      launch(openRun(lease));
      return true;
    },
  };
}

/** Of a run, what decides about further ones. */
type Placed = Pick<TaskRun, "host" | "claim">;

/**
 * Returns what may be claimed beside these runs, in the order in which to try. An owner without a run in this process, or at a
 * host, does not wait while another owner has several there: it gets one more than the limit.
 */
function claimQueries(
  runs: readonly Placed[],
  { concurrency, perHost }: Pick<RunLimits, "concurrency" | "perHost">,
): ClaimExceptions[] {
  const full = [...Map.groupBy(runs, ({ host }) => host)].filter(([, ofHost]) => ofHost.length >= perHost);
  const hosts = full.map(([host]) => host);
  const spare = full.filter(([, ofHost]) => hasSpare(ofHost, perHost));
  const except = (host: string) => hosts.filter((other) => other !== host);
  if (runs.length < concurrency) {
    const atHosts = spare.map(([host, ofHost]) => ({ exceptHosts: except(host), exceptOwners: ownersOf(ofHost) }));
    return [{ exceptHosts: hosts, exceptOwners: [] }, ...atHosts];
  }
  const closed = hosts.filter((host) => !spare.some(([open]) => open === host));
  return hasSpare(runs, concurrency) ? [{ exceptHosts: closed, exceptOwners: ownersOf(runs) }] : [];
}

/** Whether the limit is reached and an owner without a run may have one more, as another one has several. Never without owners. */
function hasSpare(runs: readonly Placed[], limit: number): boolean {
  const owners = ownersOf(runs);
  return runs.length === limit && owners.length < limit && owners.some((owner) => owner !== "");
}

function ownersOf(runs: readonly Placed[]): string[] {
  return [...new Set(runs.map(({ claim }) => claim.task.owner ?? ""))];
}

function openRun(lease: { claim: Claim; store: TaskStore; leaseMs: number; sinceMs: number }): TaskRun {
  const [controller, finish] = [new AbortController(), new AbortController()];
  const taskLease = startTaskLease({ ...lease, run: controller, finish });
  const { claim } = lease;
  return { claim, host: hostOf(claim.task.url), taskLease, controller, finish };
}
