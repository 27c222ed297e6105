import { sleep } from "../async/deadline.ts";
import { ServiceError } from "../model/errors.ts";
import type { HostPause } from "../model/url-parts.ts";

/** @param knownS How long the host was to be left alone anyway, seconds from now. */
export type PauseListener = (pause: HostPause, knownS: number) => void;

/** Longest pause, seconds: a host that asks for more is asked again after this time. */
const maxPauseS = 3_600;

/** Hosts that are remembered; those whose pauses are oldest are forgotten first. */
const maxHosts = 10_000;

/** Hosts that have asked for no requests for a while, by 429 or 503 with `Retry-After` (RFC 9110 §10.2.3, RFC 6585 §4). */
export class HostPauses {
  /** When each pause ends, by `performance.now()`. */
  readonly #ends = new Map<string, number>();
  readonly #listeners = new Set<PauseListener>();
  readonly #onWaiting: (isWaiting: boolean) => void;
  #waiting = 0;

  /** @param onWaiting Called when the first of all requests begins to wait, and when the last one no longer does. */
  constructor(onWaiting: (isWaiting: boolean) => void = () => {}) {
    this.#onWaiting = onWaiting;
  }

  /**
   * Leaves a host alone, for an hour at most, and calls the listeners; a pause that ends later stays.
   *
   * @param source The listener that the pause comes from: it is not called.
   */
  add({ host, seconds }: HostPause, source?: PauseListener): void {
    const pause = { host, seconds: Math.min(seconds, maxPauseS) };
    const knownS = this.leftS(host);
    if (!this.learn(pause)) return;
    for (const listener of this.#listeners) if (listener !== source) listener(pause, knownS);
  }

  /** Adds a pause that the listeners know of: does not call them. Returns whether the host is now left alone for longer. */
  learn({ host, seconds }: HostPause): boolean {
    const endMs = performance.now() + 1_000 * Math.min(seconds, maxPauseS);
    if (endMs <= (this.#ends.get(host) ?? 0)) return false;
    this.#ends.delete(host);
    this.#ends.set(host, endMs);
    for (const oldest of this.#ends.keys()) {
      if (this.#ends.size <= maxHosts && this.leftS(oldest) > 0) break;
      this.#ends.delete(oldest);
    }
    return true;
  }

  /** Returns how long a host is still left alone, seconds; 0: it is not. */
  leftS(host: string): number {
    return Math.max(0, (this.#ends.get(host) ?? 0) - performance.now()) / 1_000;
  }

  list(): HostPause[] {
    return [...this.#ends.keys()]
      .map((host) => ({ host, seconds: this.leftS(host) }))
      .filter(({ seconds }) => seconds > 0);
  }

  /** Calls `listener` with each pause that is added, until the returned function is called. */
  subscribe(listener: PauseListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Resolves once the host may be sent `what`.
   *
   * @throws ServiceError `upstream_status`, retryable, with `isUntried`, if that is in more than `maxWaitMs`; `signal.reason`
   */
  async wait(host: string, { what, maxWaitMs, signal }: PauseWait): Promise<void> {
    if (this.leftS(host) === 0) return;
    this.#count(1);
    try {
      for (let leftS = this.leftS(host); leftS > 0; leftS = this.leftS(host)) {
        if (leftS * 1_000 > maxWaitMs) throw pausedError(what, leftS);
        await sleep(leftS * 1_000, signal);
        signal.throwIfAborted();
      }
    } finally {
      this.#count(-1);
    }
  }

  #count(change: 1 | -1): void {
    const before = this.#waiting;
    this.#waiting += change;
    if (before === 0 || this.#waiting === 0) this.#onWaiting(this.#waiting > 0);
  }
}

interface PauseWait {
  /** The request, for the message. */
  what: string;
  maxWaitMs: number;
  signal: AbortSignal;
}

function pausedError(what: string, leftS: number): ServiceError {
  const retryAfterS = Math.ceil(leftS);
  const message = `${what} was not sent: the host asked for a pause (Retry-After), of which ${retryAfterS} s are left`;
  return new ServiceError("upstream_status", message, { retryable: true, retryAfterS, isUntried: true });
}
