export interface ClockOptions {
  /** The time of day, for what clients see; default: the system's clock, which can be set. */
  now?: () => Date;
  /** Milliseconds since any moment, never set; default: `performance.now()`, or `now` if that is given. */
  elapsedMs?: () => number;
}

export interface Clock {
  now: () => Date;
  /**
   * Returns Unix milliseconds, an integer: `now` when the clock was created, counted on by `elapsedMs`. So
   * durations are right even if the system's clock is set meanwhile.
   */
  steadyMs: () => number;
}

/** Creates a clock whose durations begin now. */
export function createClock({ now, elapsedMs }: ClockOptions): Clock {
  const read = now ?? (() => new Date());
  const elapsed = elapsedMs ?? (now && (() => now().getTime())) ?? (() => performance.now());
  const offsetMs = read().getTime() - elapsed();
  return { now: read, steadyMs: () => Math.floor(offsetMs + elapsed()) };
}
