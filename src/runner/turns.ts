export interface Turns {
  /** Runs `job` once all jobs given before for this id have ended, however they ended. */
  take(id: string, job: () => Promise<void>): Promise<void>;
  /** Resolves once no job is left, those given meanwhile included. */
  settled(): Promise<void>;
}

/** Keeps apart what touches the same task's files: jobs of one id run one after the other. */
export function createTurns(): Turns {
  const last = new Map<string, Promise<void>>();
  return {
    async take(id, job) {
      const before = last.get(id);
      const turn = (async () => {
        await before?.catch(() => undefined);
        await job();
      })();
      last.set(id, turn);
      try {
        await turn;
      } finally {
        if (last.get(id) === turn) last.delete(id);
      }
    },
    async settled() {
      while (last.size > 0) await Promise.allSettled(last.values());
    },
  };
}
