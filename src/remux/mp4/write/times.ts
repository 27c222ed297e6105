import { ServiceError } from "../../../errors.ts";
import { createRunLengths } from "./number-lists.ts";
import type { Sample } from "../../samples.ts";

/** Times of a track in its ticks, as its index states them. */
export interface TimesIndex {
  /** Counts and decode durations in turn (`stts`). */
  durations: Uint32Array;
  /** Counts and composition offsets in turn (`ctts`); the least offset is 0. */
  compositions: Uint32Array;
  /** Sum of the decode durations. */
  mediaTicks: number;
  /** Start of the first sample and end of the last in presentation order. */
  startTicks: number;
  endTicks: number;
  /** Media time (ISO/IEC 14496-12 §8.6.6) of the first sample in presentation order. */
  shownFromTicks: number;
}

export interface TrackTimes {
  /**
   * Returns the decode time that the sample gets: its own if it increases, else the next possible.
   * @throws ServiceError `upstream_invalid` for times too far apart for an MP4: 2^32 ticks between
   * samples, 2^31 between decode and presentation time.
   */
  add(sample: Sample): number;
  /** To be called after at least one sample. */
  index(): TimesIndex;
}

/** A sample lasts until the next is decoded; the last has its own duration, or that of the one before. */
export function createTrackTimes(timescale: number): TrackTimes {
  const durations = createRunLengths();
  const compositions = createRunLengths();
  let first: number | undefined;
  let last = { dts: 0, pts: 0, duration: 0 };
  let step = 0;
  let leastComposition = Infinity;
  let startTicks = Infinity;
  let endTicks = -Infinity;

  function lastStep(): number {
    return last.duration || step || 1;
  }

  return {
    add({ dts: wanted, pts: wantedPts, duration }) {
      const dts = first === undefined ? wanted : Math.max(wanted, last.dts + 1);
      // A sample that is decoded later is shown no earlier: all others would be delayed by its offset.
      const pts = dts > wanted ? Math.max(wantedPts, dts) : wantedPts;
      if (first === undefined) {
        first = dts;
      } else {
        step = within(dts - last.dts, 0, 2 ** 32 - 1, "between two samples", timescale);
        durations.push(step);
        endTicks = Math.max(endTicks, last.pts + step);
      }
      const composition = pts - dts;
      within(composition, -(2 ** 31), 2 ** 31 - 1, "between decode and presentation", timescale);
      compositions.push(composition);
      leastComposition = Math.min(leastComposition, composition);
      startTicks = Math.min(startTicks, pts);
      last = { dts, pts, duration };
      return dts;
    },
    index: () => ({
      durations: durations.pairs(lastStep()),
      compositions: aboveLeast(compositions.pairs(), leastComposition),
      mediaTicks: last.dts - first! + lastStep(),
      startTicks,
      endTicks: Math.max(endTicks, last.pts + lastStep()),
      shownFromTicks: startTicks - first! - leastComposition,
    }),
  };
}

function within(
  ticks: number,
  least: number,
  most: number,
  what: string,
  timescale: number,
): number {
  if (ticks >= least && ticks <= most) return ticks;
  throw new ServiceError(
    "upstream_invalid",
    `the media times are damaged: ${Math.round(ticks / timescale)} s ${what}`,
  );
}

function aboveLeast(pairs: Uint32Array, least: number): Uint32Array {
  return pairs.map((value, i) => (i % 2 === 0 ? value : (value | 0) - least));
}
