/** Segments were left out, and the media times after them do not show how much that was. */
export class SkipError extends Error {
  override readonly name = "SkipError";
}

/** How far media times after segments that were left out may be from those that their list says, seconds. */
export const maxSkipDriftS = 10;

/**
 * Returns how far the timestamps of a stream may be from those before, in units of 1/`perSecond` s: how much earlier than
 * its last one, and how much later than the latest of all streams. The defaults are for media that are written.
 */
export function discontinuityLimits(perSecond: number, maxBackS = 1, maxAheadS = 20) {
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
  { maxBack, maxAhead }: ReturnType<typeof discontinuityLimits>,
): boolean {
  return at < last - maxBack || at > latest + maxAhead;
}
