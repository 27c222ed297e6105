/** Limit of the back-off; a server may ask for more. */
const maxBackoffMs = 5 * 60_000;

/**
 * Returns the delay after attempt number `attempt` (from 1), milliseconds: `backoffMs`, doubled with each
 * attempt up to five minutes, minus a random part of up to a half so that tasks that failed together are not
 * retried together; at least `retryAfterS`.
 */
export function retryDelayMs(options: {
  attempt: number;
  backoffMs: number;
  retryAfterS: number | undefined;
  /** 0 ≤ n < 1 */
  random: () => number;
}): number {
  const { attempt, backoffMs, retryAfterS = 0, random } = options;
  const backoff = Math.min(backoffMs * 2 ** (attempt - 1), maxBackoffMs);
  return Math.max(Math.round(backoff * (0.5 + random() / 2)), retryAfterS * 1000);
}
