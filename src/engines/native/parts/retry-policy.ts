import { sleep } from "../../../async/deadline.ts";
import { isPauseStatus, ServiceError } from "../../../model/errors.ts";
import { isLookupFailure } from "../../../net/addresses/address-guard.ts";

/** Retries of a fetch without progress. */
export const maxFailures = 3;
/** Longest wait that a server may ask for within a run. */
export const maxWaitS = 30;

/**
 * Retries of one fetch within a run. The first wait is `backoffMs`; it doubles with each failure in a row.
 * Progress means new bytes since the previous failure, at `minSpeedBps` or more on average.
 */
export class RetryPolicy {
  readonly #backoffMs: number;
  readonly #signal: AbortSignal;
  readonly #minSpeedBps: number;
  #maxSize = 0;
  #failures = 0;
  #startedAt = performance.now();

  constructor(backoffMs: number, signal: AbortSignal, minSpeedBps = 0) {
    this.#backoffMs = backoffMs;
    this.#signal = signal;
    this.#minSpeedBps = minSpeedBps;
  }

  /**
   * Waits after a failure; `size`: bytes fetched so far.
   *
   * @throws `error` itself if it is not retryable, if a host name could not be resolved, if the server asks for a wait
   * of more than 30 s, and at the 4th failure in a row without progress; `signal.reason`
   */
  async backOff(error: unknown, size: number): Promise<void> {
    if (!isRetryable(error)) throw error;
    // For the end of a pause, the client waits.
    const retryAfterS = isPauseStatus(error.upstreamStatus) ? 0 : (error.retryAfterS ?? 0);
    this.recordFailure(error, size);
    await this.wait(this.#failures, retryAfterS * 1000);
  }

  /** Waits after a response that is not what was asked for. @throws `error` at the 4th failure in a row; `signal.reason` */
  async repeat(error: ServiceError): Promise<void> {
    this.recordFailure(error, 0);
    await this.wait(this.#failures);
  }

  /** Waits as after this many failures in a row. @throws `signal.reason` */
  async wait(failures: number, leastMs = 0): Promise<void> {
    const waitMs = Math.max(this.#backoffMs * 2 ** (failures - 1), leastMs);
    await sleep(waitMs, this.#signal);
    this.#signal.throwIfAborted();
    this.#startedAt = performance.now();
  }

  /** Counts a failure like `backOff`, without a wait. */
  recordFailure(error: unknown, size: number): void {
    const seconds = (performance.now() - this.#startedAt) / 1000;
    const added = size - this.#maxSize;
    if (added > 0 && added >= this.#minSpeedBps * seconds) this.#failures = 0;
    this.#maxSize = Math.max(this.#maxSize, size);
    this.#startedAt = performance.now();
    this.#failures += 1;
    if (this.#failures > maxFailures) throw error;
  }
}

const retryableCodes: ReadonlySet<string> = new Set(["upstream_unreachable", "upstream_timeout", "upstream_status"]);

function isRetryable(error: unknown): error is ServiceError {
  return (
    error instanceof ServiceError &&
    error.retryable &&
    retryableCodes.has(error.code) &&
    !isLookupFailure(error) &&
    (error.retryAfterS ?? 0) <= maxWaitS
  );
}

const maxRepeats = 12;

/** How often parts that are no media may still be fetched again: some streams have nothing but such parts. */
export class Repeats {
  #left = maxRepeats;

  /** Takes one; returns false if none is left. */
  take(): boolean {
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }

  /** One of them gave media. */
  refill(): void {
    this.#left = maxRepeats;
  }
}
