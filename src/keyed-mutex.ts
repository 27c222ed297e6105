/** Jobs of one key run one after the other, those of different keys beside each other. */
export interface KeyedMutex {
  /**
   * Runs `job` once all jobs given before for this key have ended, however they ended; at once where
   * there are none. Gives what it gives.
   */
  runExclusive<T>(key: string, job: () => Promise<T>): Promise<T>;
  /** Resolves once no job is left, those given meanwhile included. */
  onIdle(): Promise<void>;
}

export function createKeyedMutex(): KeyedMutex {
  /** By key: the last job that has not ended. */
  const last = new Map<string, Promise<unknown>>();
  return {
    async runExclusive(key, job) {
      const before = last.get(key);
      const turn = before === undefined ? job() : before.then(job, job);
      last.set(key, turn);
      try {
        return await turn;
      } finally {
        if (last.get(key) === turn) last.delete(key);
      }
    },
    async onIdle() {
      while (last.size > 0) await Promise.allSettled(last.values());
    },
  };
}
