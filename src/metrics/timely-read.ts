/** A read is repeated after ten times as long as it took, but after 5 s at the earliest. */
const restFactor = 10;
const minRestMs = 5_000;

/** How long a caller waits for the first result, and for a newer one. */
const firstPatienceMs = 1_000;
const laterPatienceMs = 10;

/**
 * Returns a function that returns what `read` last resolved to, reading again if that is old. It never waits for long:
 * a caller gets an earlier result if the read takes longer. Undefined if there is none, or if the last read failed.
 */
export function createTimelyRead<T>(read: () => Promise<T>): () => Promise<T | undefined> {
  let latest: T | undefined;
  let nextMs = -Infinity;
  let reading: Promise<void> | undefined;

  async function refresh(): Promise<void> {
    const startedMs = performance.now();
    try {
      latest = await read();
    } catch {
      // The store's own metrics and the log show its failures.
      latest = undefined;
    }
    const endedMs = performance.now();
    nextMs = endedMs + Math.max(minRestMs, restFactor * (endedMs - startedMs));
    reading = undefined;
  }

  return async () => {
    if (performance.now() >= nextMs) reading ??= refresh();
    const patienceMs = latest === undefined ? firstPatienceMs : laterPatienceMs;
    if (reading !== undefined) await settledWithin(reading, patienceMs);
    return latest;
  };
}

async function settledWithin(promise: Promise<void>, ms: number): Promise<void> {
  const { promise: timeout, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([promise, timeout]);
  clearTimeout(timer);
}
