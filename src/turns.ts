/** Jobs of one key run one after the other, those of different keys beside each other. */
export interface Turns {
  /**
   * Runs `job` once all jobs given before for this key have ended, however they ended; at once where
   * there are none. Gives what it gives.
   */
  take<T>(key: string, job: () => Promise<T>): Promise<T>;
  /** Resolves once no job is left, those given meanwhile included. */
  settled(): Promise<void>;
}

export function createTurns(): Turns {
  /** By key: the last job that has not ended. */
  const last = new Map<string, Promise<unknown>>();
  return {
    async take(key, job) {
      const before = last.get(key);
      const turn = before === undefined ? job() : before.then(job, job);
      last.set(key, turn);
      try {
        return await turn;
      } finally {
        if (last.get(key) === turn) last.delete(key);
      }
    },
    async settled() {
      while (last.size > 0) await Promise.allSettled(last.values());
    },
  };
}
