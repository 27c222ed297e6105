/** Runs jobs of one key one after the other, and jobs of different keys concurrently. */
export interface KeyedMutex {
  /** Runs `job` after earlier jobs for this key have settled. Returns its result. */
  runExclusive<T>(key: string, job: () => Promise<T>): Promise<T>;
  /** Resolves once no job is left, including those added meanwhile. */
  onIdle(): Promise<void>;
}

export function createKeyedMutex(): KeyedMutex {
  /** By key: the last job, until it settles. */
  const last = new Map<string, Promise<unknown>>();
  return {
    async runExclusive(key, job) {
      const before = last.get(key);
      const result = before === undefined ? job() : before.then(job, job);
      last.set(key, result);
      try {
        return await result;
      } finally {
        if (last.get(key) === result) last.delete(key);
      }
    },
    async onIdle() {
      while (last.size > 0) await Promise.allSettled(last.values());
    },
  };
}
