import { ServiceError } from "../errors.ts";

/** When a request must be over: the caller's signal, or the total time, whichever comes first. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Why: the caller's own reason, or `upstream_timeout`. */
  readonly reason: unknown;
  /** What `promise` gives, unless the deadline comes first. */
  race<T>(promise: Promise<T>): Promise<T>;
  /** Frees timer and listener; safe to call twice. */
  end(): void;
}

/** `timeoutMs` may be Infinity. `what` names the request in the message. */
export function startDeadline(signal: AbortSignal, timeoutMs: number, what: string): Deadline {
  const controller = new AbortController();
  let reason: unknown;
  const abort = (why: unknown) => {
    reason = why;
    deadline.end();
    controller.abort();
  };
  const onAbort = () => abort(signal.reason);
  const onTimeout = () => {
    abort(new ServiceError("upstream_timeout", `${what} did not complete within ${timeoutMs} ms`));
  };
  // A timer of Infinity would fire at once.
  const timer = timeoutMs === Infinity ? undefined : setTimeout(onTimeout, timeoutMs);
  const deadline: Deadline = {
    signal: controller.signal,
    get reason() {
      return reason;
    },
    async race(promise) {
      const over = Promise.withResolvers<never>();
      const onOver = () => over.reject(controller.signal.reason);
      controller.signal.addEventListener("abort", onOver);
      if (controller.signal.aborted) onOver();
      try {
        return await Promise.race([promise, over.promise]);
      } finally {
        controller.signal.removeEventListener("abort", onOver);
      }
    },
    end() {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    },
  };
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  return deadline;
}
