import { addAbortListener } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { ServiceError } from "../model/errors.ts";

/** The end of a request's time: the caller's abort or the total timeout, whichever comes first. To dispose of it ends it. */
export interface Deadline extends Disposable {
  /** Aborted at the deadline, with the reason of the caller's signal or an `upstream_timeout` error. */
  readonly signal: AbortSignal;
  /** Clears the timer and the listener on the caller's signal; safe to call twice. */
  end(): void;
}

/** Starts the timer. `timeoutMs` may be Infinity. `what` names the request in the message. */
export function startDeadline(signal: AbortSignal, timeoutMs: number, what: string): Deadline {
  const controller = new AbortController();
  const abort = (reason: unknown) => {
    end();
    controller.abort(reason);
  };
  const onAbort = () => abort(signal.reason);
  const onTimeout = () => {
    abort(new ServiceError("upstream_timeout", `${what} did not complete within ${timeoutMs} ms`));
  };
  // setTimeout would turn Infinity into 1 ms.
  const timer = timeoutMs === Infinity ? undefined : setTimeout(onTimeout, timeoutMs);
  const end = () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  };
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  return { signal: controller.signal, end, [Symbol.dispose]: end };
}

/** Settles like `promise`; rejects with `signal.reason` if `signal` is aborted first. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  using _ = addAbortListener(signal, () => reject(signal.reason));
  return await Promise.race([promise, aborted]);
}

/** Returns what `work` resolves with, or its ServiceError. Rejects with `signal.reason` if `signal` is aborted, and with all other errors. */
export async function orServiceError<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T | ServiceError> {
  try {
    return await work();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

/** Resolves after this many milliseconds, or at once when `signal` is aborted. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}
