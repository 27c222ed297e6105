/** The newest of a sequence of entries, which are numbered from 1 on; bounded by count and by size. */
export interface ReplayBuffer<T> {
  /** Drops the oldest ones where there is no room; an entry that is too big alone is not kept. */
  add(entry: T, size: number): void;
  /** Drops all; the next entry has the number behind `n`. */
  resetTo(n: number): void;
  /** The entries behind number `n`, oldest first; `undefined` where one of them is gone or `n` is yet to come. */
  after(n: number): T[] | undefined;
  /** The number of the newest entry; 0: there has been none. */
  readonly newest: number;
}

export function createReplayBuffer<T>(maxEntries: number, maxSize: number): ReplayBuffer<T> {
  // Rings: what is about entry n is in slot n modulo maxEntries.
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
