import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "../model/errors.ts";
import type { Claim, TaskStore, UpdateOptions } from "../stores/store.ts";
import type { Task } from "../model/task.ts";
import type { TaskChange } from "../feed/task-changes.ts";
import { Interruption } from "./interruption.ts";

/** The lease of a claimed task during its run. */
export interface TaskLease {
  /**
   * Updates the task under the lease. Aborts `finish` if the task's recording is to end.
   *
   * @throws Interruption `leaseLost` if the lease does not hold the task any more, which also aborts the run;
   * other errors of the store.
   */
  update(change: TaskChange, options?: Omit<UpdateOptions, "lease">): Promise<void>;
  /**
   * Does the same, and retries while the store is `unavailable`: until the lease expires, or for two seconds
   * once the run is interrupted.
   */
  updateWithRetry(change: TaskChange, options?: Omit<UpdateOptions, "lease">): Promise<void>;
  /** Reads the task, and aborts `finish` if its recording is to end. Never rejects. */
  checkFinish(): Promise<void>;
  /** Sends a heartbeat; false if the lease is lost or may have expired. */
  renew(): Promise<boolean>;
  /** Stops the heartbeats; the lease expires unless a change of state has ended it. */
  release(): void;
}

const firstPauseMs = 50;
const longestPauseMs = 2_000;

/** Share of the lease after which the run is aborted; it has the rest to end before another worker may start. */
const heldShare = 0.9;

/**
 * Renews the lease of `claim` by a heartbeat each third of `leaseMs`. Aborts `run` with an `Interruption`:
 * `leaseLost` when the store reports it, `leaseExpired` before the lease can expire, counted from when the
 * last successful heartbeat was sent.
 */
export function startTaskLease(options: {
  claim: Claim;
  store: TaskStore;
  leaseMs: number;
  /** When the claim was requested, by `performance.now()`. */
  sinceMs: number;
  run: AbortController;
  /** Aborted once the task has `finish_requested`. */
  finish: AbortController;
}): TaskLease {
  const { claim, store, leaseMs, sinceMs, run, finish } = options;
  const { lease } = claim;
  const { id } = claim.task;
  let endsMs = sinceMs + leaseMs * heldShare;
  let end: NodeJS.Timeout | undefined;

  async function renew(): Promise<boolean> {
    const sentMs = performance.now();
    try {
      const isHeld = await store.heartbeat(id, lease, leaseMs);
      if (isHeld) endsMs = Math.max(endsMs, sentMs + leaseMs * heldShare);
      else run.abort(new Interruption("leaseLost"));
      return isHeld;
    } catch {
      // The store is unavailable; the next heartbeat may succeed.
      return performance.now() < endsMs;
    }
  }

  function checkExpiry(): void {
    const leftMs = endsMs - performance.now();
    if (leftMs > 0) end = setTimeout(checkExpiry, leftMs);
    else run.abort(new Interruption("leaseExpired"));
  }

  function followRequest(task: Task | undefined): void {
    if (task?.finish_requested === true) finish.abort();
  }

  async function checkFinish(): Promise<void> {
    try {
      followRequest(await store.get(id));
    } catch {
      // The store is unavailable; the next update of the progress will tell.
    }
  }

  async function update(change: TaskChange, given: UpdateOptions = {}): Promise<void> {
    try {
      followRequest(await store.update(id, change, { ...given, lease }));
    } catch (error) {
      if (!isServiceError(error, "conflict") && !isServiceError(error, "not_found")) throw error;
      const leaseLost = new Interruption("leaseLost");
      run.abort(leaseLost);
      throw leaseLost;
    }
  }

  async function updateWithRetry(change: TaskChange, given?: UpdateOptions): Promise<void> {
    const firstMs = performance.now();
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        await update(change, given);
        return;
      } catch (error) {
        if (!isServiceError(error, "unavailable")) throw error;
        const isInterrupted = run.signal.reason instanceof Interruption;
        const lastMs = isInterrupted ? firstMs + longestPauseMs : endsMs;
        if (performance.now() + pauseMs >= lastMs) throw error;
      }
      await sleep(pauseMs);
    }
  }

  checkExpiry();
  const heartbeats = setInterval(() => void renew(), leaseMs / 3);
  return {
    update,
    updateWithRetry,
    checkFinish,
    renew,
    release() {
      clearInterval(heartbeats);
      clearTimeout(end);
    },
  };
}

function isServiceError(error: unknown, code: ServiceError["code"]): boolean {
  return error instanceof ServiceError && error.code === code;
}
