import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "../errors.ts";
import type { Claim, TaskStore, UpdateOptions } from "../stores/store.ts";
import type { TaskChange } from "../task.ts";
import { Interruption } from "./interruption.ts";

/** A claimed task while its run lasts. */
export interface HeldTask {
  /**
   * Changes the task under its lease.
   *
   * @throws Interruption `taken` where the lease is no longer the one that holds the task, which also
   * aborts the run; else as the store.
   */
  update(change: TaskChange, options?: Omit<UpdateOptions, "lease">): Promise<void>;
  /**
   * The same; a store that cannot take it (`unavailable`) is asked again while the lease lasts, and no
   * longer than two seconds once the service stops.
   */
  insist(change: TaskChange, options?: Omit<UpdateOptions, "lease">): Promise<void>;
  /** Ends the heartbeats; the lease then runs out, unless a move has ended it. */
  release(): void;
}

const firstPauseMs = 50;
const longestPauseMs = 2_000;

/**
 * Keeps the lease of `claim` alive by a heartbeat each third of `leaseMs`. Aborts `run` with an
 * `Interruption` when it is lost: another claim has the task, or the store was out of reach for `leaseMs`.
 */
export function holdTask(options: {
  claim: Claim;
  store: TaskStore;
  leaseMs: number;
  run: AbortController;
  now: () => Date;
}): HeldTask {
  const { claim, store, leaseMs, run, now } = options;
  const { lease } = claim;
  const { id } = claim.task;
  let endsMs = now().getTime() + leaseMs;

  async function beat(): Promise<void> {
    const sentMs = now().getTime();
    try {
      if (await store.heartbeat(id, lease, leaseMs)) endsMs = sentMs + leaseMs;
      else run.abort(new Interruption("taken"));
    } catch {
      // The store is out of reach; its own calls say so. The next heartbeat may arrive.
      if (now().getTime() >= endsMs) run.abort(new Interruption("taken"));
    }
  }

  async function update(change: TaskChange, given: UpdateOptions = {}): Promise<void> {
    try {
      await store.update(id, change, { ...given, lease });
    } catch (error) {
      if (!isServiceError(error, "conflict") && !isServiceError(error, "not_found")) throw error;
      const taken = new Interruption("taken");
      run.abort(taken);
      throw taken;
    }
  }

  async function insist(change: TaskChange, given?: UpdateOptions): Promise<void> {
    const firstMs = now().getTime();
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        await update(change, given);
        return;
      } catch (error) {
        if (!isServiceError(error, "unavailable")) throw error;
        const lastMs = isStopping(run.signal) ? firstMs + longestPauseMs : endsMs;
        if (now().getTime() + pauseMs >= lastMs) throw error;
      }
      await sleep(pauseMs);
    }
  }

  const beats = setInterval(() => void beat(), leaseMs / 3);
  return { update, insist, release: () => clearInterval(beats) };
}

function isServiceError(error: unknown, code: ServiceError["code"]): boolean {
  return error instanceof ServiceError && error.code === code;
}

function isStopping({ reason }: AbortSignal): boolean {
  return reason instanceof Interruption && reason.kind === "stopping";
}
