export type KeyedMutex = ReturnType<typeof createKeyedMutex>;

/** Creates a mutex that runs jobs of one key one after the other, and jobs of different keys concurrently. */
export function createKeyedMutex() {
  /** By key: the last job, until it settles. */
  const last = new Map<string, Promise<unknown>>();
  return {
    /** Runs `job` after earlier jobs for this key have settled. Returns its result. */
    async runExclusive<T>(key: string, job: () => Promise<T>): Promise<T> {
      const before = last.get(key);
      const result = before === undefined ? job() : before.then(job, job);
      last.set(key, result);
      try {
        return await result;
      } finally {
        if (last.get(key) === result) last.delete(key);
      }
    },
    /** Resolves once no job is left, including those added meanwhile. */
    async onIdle(): Promise<void> {
      while (last.size > 0) await Promise.allSettled(last.values());
    },
  };
}
