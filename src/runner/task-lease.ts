import { setTimeout as sleep } from "node:timers/promises";
import { isServiceError } from "../model/errors.ts";
import type { Claim, TaskStore, UpdateOptions } from "../stores/store.ts";
import type { Grown, Growing } from "../stores/store-types.ts";
import type { Task } from "../model/task.ts";
import type { TaskChange } from "../feed/task-changes.ts";

/** A run of a claimed task. */
export interface TaskRun {
  claim: Claim;
  host: string;
  taskLease: TaskLease;
  /** Aborted with an `Interruption`, or when the run lasts too long. */
  controller: AbortController;
  /** Aborted when a recording is to end with what there is. */
  finish: AbortController;
}

/** The lease of a claimed task during its run. */
export interface TaskLease {
  /**
   * Updates the task under the lease. Aborts `finish` if the task's recording is to end.
   *
   * @throws Interruption `leaseLost` if the lease does not hold the task any more, which also aborts the run;
   * other errors of the store.
   */
  update(change: TaskChange, options: Omit<UpdateOptions, "lease">): Promise<void>;
  /**
   * Updates as `update` does, and retries while the store is `unavailable`: until the lease expires, or for two
   * seconds once the run is interrupted.
   */
  updateWithRetry(change: TaskChange, options?: Omit<UpdateOptions, "lease">): Promise<void>;
  /** Adds members to the collection; retries and throws as `updateWithRetry` does. */
  grow(growing: Omit<Growing, "lease">): Promise<Grown>;
  /** Queues members of the collection again; retries and throws as `updateWithRetry` does. */
  retryMembers(): Promise<Grown>;
  /** Reads the task, and aborts `finish` if its recording is to end. Never rejects. */
  checkFinish(): Promise<void>;
  /** Sends a heartbeat; false if the lease is lost or may have expired. */
  renew(): Promise<boolean>;
  /** Stops the heartbeats; the lease expires unless a change of state has ended it. */
  release(): void;
}

/**
 * Why a run was interrupted; the reason of its abort signal.
 * - `leaseLost`: the task was canceled, deleted or claimed again; the run changes nothing more.
 * - `leaseExpired`: the store was unreachable for too long to know whether the lease is lost.
 * - `shutdown`: the service is stopping.
 *
 * In the last two cases the task is requeued if the lease still holds it.
 */
export class Interruption extends Error {
  override readonly name = "Interruption";
  readonly kind: keyof typeof interruptions;

  constructor(kind: keyof typeof interruptions) {
    super(interruptions[kind]);
    this.kind = kind;
  }
}

const interruptions = {
  leaseLost: "the task's lease was lost",
  leaseExpired: "the lease expired while the store was unreachable",
  shutdown: "the service is stopping",
};

const firstPauseMs = 50;
const longestPauseMs = 2_000;

/** Share of the lease after which the run is aborted; it has the rest to end before another worker may start. */
const heldShare = 0.9;

interface TaskLeaseOptions {
  claim: Claim;
  store: TaskStore;
  leaseMs: number;
  /** When the claim was requested, by `performance.now()`. */
  sinceMs: number;
  run: AbortController;
  /** Aborted once the task has `finish_requested`. */
  finish: AbortController;
}

/**
 * Renews the lease of `claim` by a heartbeat each third of `leaseMs`. Aborts `run` with an `Interruption`:
 * `leaseLost` when the store reports it, `leaseExpired` before the lease can expire, counted from when the
 * last successful heartbeat was sent.
 */
export function startTaskLease(options: TaskLeaseOptions): TaskLease {
  const { claim, store, run, finish } = options;
  const { lease } = claim;
  const { id } = claim.task;
  const heartbeats = startHeartbeats(options);

  function followRequest(task: Task | undefined): void {
    if (task?.finish_requested === true) finish.abort();
  }

  async function underLease<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (!isServiceError(error, "conflict", "not_found")) throw error;
      const leaseLost = new Interruption("leaseLost");
      run.abort(leaseLost);
      throw leaseLost;
    }
  }

  async function withRetry<T>(call: () => Promise<T>): Promise<T> {
    const firstMs = performance.now();
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        return await underLease(call);
      } catch (error) {
        if (!isServiceError(error, "unavailable")) throw error;
        const isInterrupted = run.signal.reason instanceof Interruption;
        const lastMs = isInterrupted ? firstMs + longestPauseMs : heartbeats.endsMs();
        if (performance.now() + pauseMs >= lastMs) throw error;
      }
      await sleep(pauseMs);
    }
  }

  const update = async (change: TaskChange, given: UpdateOptions = {}) =>
    followRequest(await store.update(id, change, { ...given, lease }));

  return {
    update: (change, given) => underLease(() => update(change, given)),
    updateWithRetry: (change, given) => withRetry(() => update(change, given)),
    grow: (growing) => withRetry(() => store.grow(id, { ...growing, lease })),
    retryMembers: () => withRetry(() => store.retryMembers(id, lease)),
    async checkFinish() {
      try {
        followRequest(await store.get(id));
      } catch {
        // The store is unavailable; the next update of the progress will show that.
      }
    },
    renew: heartbeats.send,
    release: heartbeats.stop,
  };
}

/** Sends the heartbeats and aborts `run`. */
function startHeartbeats({ claim, store, leaseMs, sinceMs, run }: TaskLeaseOptions) {
  let endsMs = sinceMs + leaseMs * heldShare;
  let end: NodeJS.Timeout | undefined;

  async function send(): Promise<boolean> {
    const sentMs = performance.now();
    try {
      const isHeld = await store.heartbeat(claim.task.id, claim.lease, leaseMs);
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

  checkExpiry();
  const interval = setInterval(() => void send(), leaseMs / 3);
  return {
    send,
    /** When the run is aborted, by `performance.now()`, unless a heartbeat succeeds before. */
    endsMs: () => endsMs,
    stop() {
      clearInterval(interval);
      clearTimeout(end);
    },
  };
}
