import { setTimeout as delay } from "node:timers/promises";
import { ServiceError } from "../../../errors.ts";

/** Retries of one fetch within a run. */
export interface RetryPolicy {
  /**
   * Waits after a failure; `size`: bytes fetched so far.
   *
   * @throws `error` itself if it is not retryable, if the server asks for a wait of more than 30 s, and at
   * the 4th failure in a row without a new byte; `signal.reason`
   */
  backOff(error: unknown, size: number): Promise<void>;
  /** Counts a failure like `backOff`, without a wait. */
  recordFailure(error: unknown, size: number): void;
}

const maxFailures = 3;
const maxWaitS = 30;

/** The first wait is `backoffMs`; it doubles with each failure in a row. */
export function createRetryPolicy(backoffMs: number, signal: AbortSignal): RetryPolicy {
  let maxSize = 0;
  let failures = 0;

  function recordFailure(error: unknown, size: number): void {
    if (size > maxSize) failures = 0;
    maxSize = Math.max(maxSize, size);
    failures += 1;
    if (failures > maxFailures) throw error;
  }

  return {
    recordFailure,
    async backOff(error, size) {
      if (!isRetryable(error)) throw error;
      const { retryAfterS = 0 } = error;
      recordFailure(error, size);
      const waitMs = Math.max(backoffMs * 2 ** (failures - 1), retryAfterS * 1000);
      await delay(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    },
  };
}

const retryableCodes: ReadonlySet<string> = new Set([
  "upstream_unreachable",
  "upstream_timeout",
  "upstream_status",
]);

function isRetryable(error: unknown): error is ServiceError {
  return (
    error instanceof ServiceError &&
    error.retryable &&
    retryableCodes.has(error.code) &&
    (error.retryAfterS ?? 0) <= maxWaitS
  );
}
