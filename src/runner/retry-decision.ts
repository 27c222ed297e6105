import { ServiceError } from "../errors.ts";
import type { TaskChange } from "../task-changes.ts";
import { retryDelayMs } from "./retry-delay.ts";

export interface RetryRules {
  /** Runs of a task until a failure that might pass is final. */
  maxAttempts: number;
  /** Wait after the first failure, milliseconds. */
  backoffMs: number;
  random: () => number;
}

/** What becomes of the task, and when it may run again. */
export interface RetryDecision {
  change: TaskChange & { error: NonNullable<TaskChange["error"]> };
  delayMs?: number;
}

/**
 * What a failure of the `attempt`-th run means: again later where it may pass and attempts are left,
 * else failed. What is no `ServiceError` is a fault of the program (`internal`) and would only repeat.
 */
export function decideRetry(failure: unknown, attempt: number, rules: RetryRules): RetryDecision {
  const { code, message, retryable, retryAfterS } = serviceErrorOf(failure);
  const error = { code, message, retryable };
  if (!retryable || attempt >= rules.maxAttempts) return { change: { state: "failed", error } };
  const { backoffMs, random } = rules;
  const delayMs = retryDelayMs({ attempt, backoffMs, retryAfterS, random });
  return { change: { state: "queued", error }, delayMs };
}

function serviceErrorOf(failure: unknown): ServiceError {
  if (failure instanceof ServiceError) return failure;
  return new ServiceError("internal", "the run of the task failed with an unexpected error", {
    cause: failure,
    retryable: false,
  });
}
