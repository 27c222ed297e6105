/**
 * A computation in steps: it yields where it may be paused. A step is short, a few milliseconds of CPU time
 * at most, whatever the input.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs all steps at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

export type TimeSlices = ReturnType<typeof createTimeSlices>;

/** Creates slices that share the event loop between computations and everything else, and starts the first slice. */
export function createTimeSlices(sliceMs = 5) {
  let sliceEnd = performance.now() + sliceMs;
  const waiting: (() => void)[] = [];

  /** Lets the computation that has waited longest continue. */
  function startSlice(): void {
    sliceEnd = performance.now() + sliceMs;
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(startSlice);
  }

  function nextSlice(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (waiting.push(resolve) === 1) setImmediate(startSlice);
    return promise;
  }

  return {
    /**
     * Runs `steps` to their end. All computations together run for about `sliceMs` in one iteration of the event loop, and
     * take turns.
     *
     * Rejects with the errors of `steps`; with `signal.reason` before the next step once `signal` is aborted.
     */
    async run<T>(steps: Steps<T>, signal: AbortSignal): Promise<T> {
      for (;;) {
        if (performance.now() >= sliceEnd) await nextSlice();
        signal.throwIfAborted();
        const { done, value } = steps.next();
        if (done === true) return value;
      }
    },
  };
}
