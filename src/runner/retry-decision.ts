import { isPauseStatus, ServiceError, statedUpstream } from "../model/errors.ts";
import type { TaskChange } from "../feed/task-changes.ts";

/** Limit of the back-off; a server may ask for more. */
const maxBackoffMs = 5 * 60_000;

export interface RetryRules {
  /** Attempts after which a retryable failure is final. */
  maxAttempts: number;
  /** Delay after the first failure, milliseconds. */
  backoffMs: number;
  /** Returns 0 ≤ n < 1. */
  random: () => number;
}

interface FailedRun {
  /** Its number, from 1. */
  attempt: number;
  /** Whether it has added bytes to the download. */
  hasProgressed: boolean;
}

/** The change of the task, and the delay before its retry if there is one. */
interface RetryDecision {
  change: TaskChange & { error: NonNullable<TaskChange["error"]> };
  delayMs?: number;
}

/**
 * Decides what the failure of a run means: a retry if it is retryable and attempts
 * are left, else `failed`. A run that a host has put off uses up no attempt: nothing was sent to the host, or it asked for a pause, by 429
 * or 503 with `Retry-After`, after the run had progressed. One that got only the request for a pause is retried
 * a back-off after the pause: if its page always asks for one, the other tasks of the host run first. An error other than a `ServiceError` is an unexpected one (`internal`), not retried.
 */
export function decideRetry(failure: unknown, { attempt, hasProgressed }: FailedRun, rules: RetryRules): RetryDecision {
  const known = serviceErrorOf(failure);
  const { code, message, retryable, retryAfterS, isUntried, upstreamStatus } = known;
  const error = { code, message, retryable, ...statedUpstream(known) };
  const isPause = retryAfterS !== undefined && isPauseStatus(upstreamStatus);
  if (isUntried || (isPause && hasProgressed)) {
    const change = { state: "queued", attempts: attempt - 1, error } as const;
    return { change, delayMs: retryDelayMs(1, rules, retryAfterS) };
  }
  if (!retryable || attempt >= rules.maxAttempts) return { change: { state: "failed", error } };
  const delayMs = isPause
    ? retryAfterS * 1_000 + retryDelayMs(attempt, rules)
    : retryDelayMs(attempt, rules, retryAfterS);
  return { change: { state: "queued", error }, delayMs };
}

/**
 * Returns the delay after attempt number `attempt` (from 1), milliseconds: `backoffMs`, doubled with each
 * attempt up to five minutes, minus a random part of up to a half so that tasks that failed together are not
 * retried together; at least `retryAfterS`.
 */
export function retryDelayMs(
  attempt: number,
  { backoffMs, random }: Pick<RetryRules, "backoffMs" | "random">,
  retryAfterS = 0,
): number {
  const backoff = Math.min(backoffMs * 2 ** (attempt - 1), maxBackoffMs);
  return Math.max(Math.round(backoff * (0.5 + random() / 2)), retryAfterS * 1000);
}

function serviceErrorOf(failure: unknown): ServiceError {
  if (failure instanceof ServiceError) return failure;
  return new ServiceError("internal", "the run of the task failed with an unexpected error", {
    cause: failure,
    retryable: false,
  });
}
