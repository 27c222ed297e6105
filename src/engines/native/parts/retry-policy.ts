import { setTimeout as delay } from "node:timers/promises";
import { ServiceError } from "../../../errors.ts";

/** How often a part is tried again within one run. */
export interface RetryPolicy {
  /**
   * Waits after a failure with `size` bytes there.
   *
   * @throws `error` itself where it is not worth another try, after 3 failures in a row without a byte
   *   more than ever before, and where the server asks for a longer wait than 30 s; `signal.reason`
   */
  backOff(error: unknown, size: number): Promise<void>;
  /** Counts as `wait` does, for what needs no waiting. */
  recordFailure(error: unknown, size: number): void;
}

const maxFailures = 3;
const maxWaitS = 30;

/** The first wait is `backOffMs`; it doubles with every failure in a row. */
export function createRetryPolicy(backOffMs: number, signal: AbortSignal): RetryPolicy {
  let furthest = 0;
  let failures = 0;

  function recordFailure(error: unknown, size: number): void {
    if (size > furthest) failures = 0;
    furthest = Math.max(furthest, size);
    failures += 1;
    if (failures > maxFailures) throw error;
  }

  return {
    recordFailure,
    async backOff(error, size) {
      if (!isPassing(error)) throw error;
      const { retryAfterS = 0 } = error;
      recordFailure(error, size);
      const waitMs = Math.max(backOffMs * 2 ** (failures - 1), retryAfterS * 1000);
      await delay(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    },
  };
}

const passingCodes: ReadonlySet<string> = new Set([
  "upstream_unreachable",
  "upstream_timeout",
  "upstream_status",
]);

function isPassing(error: unknown): error is ServiceError {
  return (
    error instanceof ServiceError &&
    error.retryable &&
    passingCodes.has(error.code) &&
    (error.retryAfterS ?? 0) <= maxWaitS
  );
}
