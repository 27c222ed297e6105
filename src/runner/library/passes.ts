interface PassOptions {
  /** Does a job if that can be done now; resolves with false if it has failed. */
  perform(id: string): Promise<boolean>;
  /** Pause before all that failed is tried again, milliseconds. */
  retryMs: number;
  signal: AbortSignal;
}

/**
 * Returns a function that tries jobs. Of those that have failed within `retryMs` it tries only one, which shows whether the others can be done: thousands
 * may wait for a disk.
 */
export function createPasses({ perform, retryMs, signal }: PassOptions): (ids: readonly string[]) => Promise<void> {
  /** Those that failed when they were tried last. */
  const failed = new Set<string>();
  let retriedMs = -Infinity;

  /** Returns whether none has failed. */
  async function performAll(ids: readonly string[]): Promise<boolean> {
    for (const id of ids) {
      if (signal.aborted) return false;
      failed.delete(id);
      if (!(await perform(id))) failed.add(id);
    }
    return !ids.some((id) => failed.has(id));
  }

  return async (ids) => {
    const known = new Set(ids);
    for (const id of failed) if (!known.has(id)) failed.delete(id);
    // A timer may be early.
    if (performance.now() - retriedMs >= 0.9 * retryMs) {
      retriedMs = performance.now();
      await performAll(ids);
      return;
    }
    const [one, ...others] = failed;
    await performAll(ids.filter((id) => !failed.has(id)));
    if (one !== undefined && (await performAll([one]))) await performAll(others);
  };
}
