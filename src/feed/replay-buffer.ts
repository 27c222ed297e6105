/** The newest entries of a sequence numbered from 1, bounded by count and by total size. */
export interface ReplayBuffer<T> {
  /** Drops the oldest entries to stay within the bounds; does not keep an entry that alone exceeds them. */
  add(entry: T, size: number): void;
  /** Clears the buffer; the next entry gets number `n + 1`. */
  resetTo(n: number): void;
  /** Returns the entries after number `n`, oldest first; undefined if one of them is gone or `n` is not reached yet. */
  after(n: number): T[] | undefined;
  /** The number of the newest entry; 0: there has been none. */
  readonly newest: number;
}

export function createReplayBuffer<T>(maxEntries: number, maxSize: number): ReplayBuffer<T> {
  // Rings: entry n and its size are in slot n modulo maxEntries.
  const entries: (T | undefined)[] = [];
  const sizes: number[] = [];
  let oldest = 1;
  let newest = 0;
  let totalSize = 0;

  function dropOldest(): void {
    const slot = oldest % maxEntries;
    totalSize -= sizes[slot] ?? 0;
    entries[slot] = undefined;
    oldest += 1;
  }

  return {
    add(entry, size) {
      if (newest - oldest + 1 === maxEntries) dropOldest();
      newest += 1;
      entries[newest % maxEntries] = entry;
      sizes[newest % maxEntries] = size;
      totalSize += size;
      while (totalSize > maxSize) dropOldest();
    },
    resetTo(n) {
      while (oldest <= newest) dropOldest();
      newest = n;
      oldest = n + 1;
    },
    after(n) {
      if (n < oldest - 1 || n > newest) return undefined;
      const found: T[] = [];
      for (let next = n + 1; next <= newest; next += 1) {
        const entry = entries[next % maxEntries];
        if (entry !== undefined) found.push(entry);
      }
      return found;
    },
    get newest() {
      return newest;
    },
  };
}
