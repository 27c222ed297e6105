import { ServiceError } from "../errors.ts";
import type { TaskChange } from "../task-changes.ts";
import { retryDelayMs } from "./retry-delay.ts";

export interface RetryRules {
  /** Attempts after which a retryable failure is final. */
  maxAttempts: number;
  /** Delay after the first failure, milliseconds. */
  backoffMs: number;
  random: () => number;
}

/** The change of the task, and the delay before its retry if there is one. */
export interface RetryDecision {
  change: TaskChange & { error: NonNullable<TaskChange["error"]> };
  delayMs?: number;
}

/**
 * Decides what a failure of attempt number `attempt` (from 1) means: a retry if it is retryable and attempts
 * are left, else `failed`. An error other than a `ServiceError` is an unexpected one (`internal`), not retried.
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
