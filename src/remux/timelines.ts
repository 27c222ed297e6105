/**
 * Lays the timelines of a presentation one after the other. All demuxers of one output share it, so that
 * sound and pictures from different places stay together.
 */
export interface Timelines {
  /**
   * Seconds to be added to the media times of `timeline`: `offsetS` where it is given (it may differ
   * between the tracks of a timeline). Else the first call for a timeline decides and later ones get the
   * same: 0 for the first timeline of all, and for the others what puts `firstS` (the timeline's first
   * presentation time) where the latest sample ended.
   */
  offset(timeline: number, offsetS: number | null, firstS: number): number;
  /** A sample ends at this presentation time, offset included. */
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
