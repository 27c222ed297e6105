import { untilAborted } from "./deadline.ts";

interface Run<T> {
  promise: Promise<T>;
  abort: AbortController;
  waiting: number;
}

/** Shares one run of a job between concurrent calls for the same key. */
export function createSingleFlight<T>() {
  const runs = new Map<string, Run<T>>();

  function start(key: string, job: (abort: AbortController) => Promise<T>): Run<T> {
    const abort = new AbortController();
    const promise = job(abort).finally(() => remove(key, run));
    const run: Run<T> = { promise, abort, waiting: 0 };
    runs.set(key, run);
    return run;
  }

  /** Returns whether `run` was still in flight. */
  function remove(key: string, run: Run<T>): boolean {
    return runs.get(key) === run && runs.delete(key);
  }

  return {
    /**
     * Returns the result of the run for `key` that is in flight, else of `job`, which it calls at once. The run is aborted
     * with the last of the calls that wait for it.
     *
     * @throws what the job throws; `signal.reason` when `signal` is aborted.
     */
    async run(key: string, signal: AbortSignal, job: (abort: AbortController) => Promise<T>): Promise<T> {
      signal.throwIfAborted();
      const run = runs.get(key) ?? start(key, job);
      run.waiting += 1;
      try {
        return await untilAborted(run.promise, signal);
      } finally {
        run.waiting -= 1;
        if (run.waiting === 0 && remove(key, run)) run.abort.abort(signal.reason);
      }
    },
    /** Aborts all runs in flight. */
    abort(reason: unknown): void {
      for (const { abort } of runs.values()) abort.abort(reason);
    },
  };
}
