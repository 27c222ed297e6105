/**
 * Puts the timelines of a presentation one after the other. All demuxers of one output share it, so that
 * audio and video from different sources stay in sync.
 */
export interface Timelines {
  /**
   * Returns the seconds to add to the media times of `timeline`: `offsetS` if it is given (it may differ
   * between the tracks of a timeline). Otherwise the first call for a timeline decides and later calls
   * return the same: 0 for the very first timeline; for the others such that `firstS` (the timeline's
   * first presentation time) is where the latest sample ended.
   */
  offset(timeline: number, offsetS: number | null, firstS: number): number;
  /** Notes that a sample ends at this presentation time, offset included. */
  reach(endS: number): void;
}

export function createTimelines(): Timelines {
  const offsets = new Map<number, number>();
  let end = 0;
  return {
    offset(timeline, offsetS, firstS) {
      const known = offsets.get(timeline);
      const offset = offsetS ?? known ?? (offsets.size === 0 ? 0 : end - firstS);
      if (known === undefined) offsets.set(timeline, offset);
      return offset;
    },
    reach(endS) {
      end = Math.max(end, endS);
    },
  };
}
