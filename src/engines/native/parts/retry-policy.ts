import { setTimeout as delay } from "node:timers/promises";
import { ServiceError } from "../../../model/errors.ts";
import { isLookupFailure } from "../../../net/addresses/address-guard.ts";

/** Retries of one fetch within a run. */
export interface RetryPolicy {
  /**
   * Waits after a failure; `size`: bytes fetched so far.
   *
   * @throws `error` itself if it is not retryable, if a host name could not be resolved, if the server asks for a wait
   * of more than 30 s, and at the 4th failure in a row without progress; `signal.reason`
   */
  backOff(error: unknown, size: number): Promise<void>;
  /** Counts a failure like `backOff`, without a wait. */
  recordFailure(error: unknown, size: number): void;
}

const maxFailures = 3;
const maxWaitS = 30;

/**
 * The first wait is `backoffMs`; it doubles with each failure in a row. Progress means new bytes since the
 * previous failure, at `minSpeedBps` or more on average.
 */
export function createRetryPolicy(
  backoffMs: number,
  signal: AbortSignal,
  minSpeedBps = 0,
): RetryPolicy {
  let maxSize = 0;
  let failures = 0;
  let startedAt = performance.now();

  function recordFailure(error: unknown, size: number): void {
    const seconds = (performance.now() - startedAt) / 1000;
    if (size > maxSize && size - maxSize >= minSpeedBps * seconds) failures = 0;
    maxSize = Math.max(maxSize, size);
    startedAt = performance.now();
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
      startedAt = performance.now();
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
    !isLookupFailure(error) &&
    (error.retryAfterS ?? 0) <= maxWaitS
  );
}
