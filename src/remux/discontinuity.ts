/** How far the timestamps of a stream may be from those before, in its own unit of time. */
export interface DiscontinuityLimits {
  /** How much earlier than the last one of the stream. */
  maxBack: number;
  /** How much later than the latest one of all streams. */
  maxAhead: number;
}

/** Returns limits in units of 1/`perSecond` s; the defaults are for media that are written. */
export function discontinuityLimits(perSecond: number, maxBackS = 1, maxAheadS = 20): DiscontinuityLimits {
  return { maxBack: maxBackS * perSecond, maxAhead: maxAheadS * perSecond };
}

/**
 * Returns whether the timestamp `at` of a stream does not continue those before.
 * @param last The stream's own last timestamp; −Infinity: none yet.
 * @param latest The latest timestamp of all streams that share its timeline.
 */
export function isDiscontinuity(
  at: number,
  last: number,
  latest: number,
  { maxBack, maxAhead }: DiscontinuityLimits,
): boolean {
  return at < last - maxBack || at > latest + maxAhead;
}
