/** No back-off is longer than five minutes; a server may ask for more. */
const maxBackoffMs = 5 * 60_000;

/**
 * How long a task waits behind its `attempt`-th failure (the first is 1), milliseconds: `backoffMs`,
 * doubled with each attempt up to five minutes, of which a random half is left out so that tasks that
 * failed together do not come back together; at least what the server asked for.
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
