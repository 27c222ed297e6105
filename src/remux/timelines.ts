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
  /**
   * Returns the presentation time of a leap in the times of `source`, whose media times continue with
   * `firstS`: `atS`, or, in sync with it, that of the same leap in another source of the timeline.
   */
  leap(leap: Leap): number;
  /** Notes that a sample ends at this presentation time, offset included. */
  reach(endS: number): void;
}

export interface Leap {
  /** The demuxer. */
  source: object;
  timeline: number;
  /** First media time after the leap, seconds. */
  firstS: number;
  /** Where the source's samples before it ended, seconds. */
  atS: number;
}

/** Of media and presentation times of one leap in two sources. */
const maxApartS = 0.5;
const maxLeaps = 64;

export function createTimelines(): Timelines {
  const offsets = new Map<number, number>();
  let leaps: Leap[] = [];
  let end = 0;
  return {
    offset(timeline, offsetS, firstS) {
      const known = offsets.get(timeline);
      const offset = offsetS ?? known ?? (offsets.size === 0 ? 0 : end - firstS);
      if (known === undefined) offsets.set(timeline, offset);
      return offset;
    },
    leap(leap) {
      const { source, timeline, firstS, atS } = leap;
      const inSync = (other: Leap): number => other.atS + firstS - other.firstS;
      const [nearest] = leaps
        .filter((other) => other.source !== source && other.timeline === timeline)
        .filter((other) => Math.abs(other.firstS - firstS) <= maxApartS)
        .toSorted((a, b) => Math.abs(inSync(a) - atS) - Math.abs(inSync(b) - atS));
      if (nearest && Math.abs(inSync(nearest) - atS) <= maxApartS) return inSync(nearest);
      leaps = [...leaps.slice(1 - maxLeaps), leap];
      return atS;
    },
    reach(endS) {
      end = Math.max(end, endS);
    },
  };
}
