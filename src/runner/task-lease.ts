import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "../errors.ts";
import type { Claim, TaskStore, UpdateOptions } from "../stores/store.ts";
import type { TaskChange } from "../task-changes.ts";
import { Interruption } from "./interruption.ts";

/** A claimed task while its run lasts. */
export interface TaskLease {
  /**
   * Changes the task under its lease.
   *
   * @throws Interruption `leaseLost` where the lease is no longer the one that holds the task, which also
   * aborts the run; else as the store.
   */
  update(change: TaskChange, options?: Omit<UpdateOptions, "lease">): Promise<void>;
  /**
   * The same; a store that cannot take it (`unavailable`) is asked again while the lease lasts, and no
   * longer than two seconds once the run is interrupted.
   */
  updateWithRetry(change: TaskChange, options?: Omit<UpdateOptions, "lease">): Promise<void>;
  /** Sends a heartbeat now; `false` where the task is no longer this run's, or may not be. */
  renew(): Promise<boolean>;
  /** Ends the heartbeats; the lease then runs out, unless a move has ended it. */
  release(): void;
}

const firstPauseMs = 50;
const longestPauseMs = 2_000;

/** Of the lease; the rest is for the run to come to its end in before another worker may begin. */
const heldShare = 0.9;

/**
 * Keeps the lease of `claim` alive by a heartbeat each third of `leaseMs`. Aborts `run` with an
 * `Interruption`: `leaseLost` when the store says that the lease is no longer held, `leaseExpired` before it can
 * run out, counted from when the last heartbeat that arrived was sent, whatever became of later ones.
 */
export function startTaskLease(options: {
  claim: Claim;
  store: TaskStore;
  leaseMs: number;
  /** When the claim was asked for, by `performance.now()`. */
  sinceMs: number;
  run: AbortController;
}): TaskLease {
  const { claim, store, leaseMs, sinceMs, run } = options;
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
      // The store is out of reach; its own calls say so. The next heartbeat may arrive.
      return performance.now() < endsMs;
    }
  }

  function endInTime(): void {
    const leftMs = endsMs - performance.now();
    if (leftMs > 0) end = setTimeout(endInTime, leftMs);
    else run.abort(new Interruption("leaseExpired"));
  }

  async function update(change: TaskChange, given: UpdateOptions = {}): Promise<void> {
    try {
      await store.update(id, change, { ...given, lease });
    } catch (error) {
      if (!isServiceError(error, "conflict") && !isServiceError(error, "not_found")) throw error;
      const taken = new Interruption("leaseLost");
      run.abort(taken);
      throw taken;
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

  endInTime();
  const beats = setInterval(() => void renew(), leaseMs / 3);
  return {
    update,
    updateWithRetry,
    renew,
    release() {
      clearInterval(beats);
      clearTimeout(end);
    },
  };
}

function isServiceError(error: unknown, code: ServiceError["code"]): boolean {
  return error instanceof ServiceError && error.code === code;
}
