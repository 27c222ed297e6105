import { ServiceError } from "../../../model/errors.ts";
import { createRunLengths } from "./number-lists.ts";
import type { Sample } from "../../samples.ts";

/** Times of a track in its ticks, as its index states them. */
export interface TimesIndex {
  /** Counts and decode durations in turn (`stts`). */
  durations: Uint32Array;
  /** Counts and composition offsets in turn (`ctts`), none of them negative. */
  compositions: Uint32Array;
  /** Sum of the decode durations. */
  mediaTicks: number;
  /** Start of the first sample and end of the last in presentation order, without hidden ones. */
  startTicks: number;
  endTicks: number;
  /** The runs of samples between which others are hidden, in order; `null`: none is hidden. */
  runs: readonly PresentedRun[] | null;
  /** Decode time of the first sample. */
  firstTicks: number;
  /** Media time (ISO/IEC 14496-12 §8.6.6) of the presentation time 0. */
  zeroTicks: number;
}

/** Samples that are presented one after the other, in ticks. */
export interface PresentedRun {
  startTicks: number;
  endTicks: number;
  /** How much more time the media have before it than the presentation. */
  shiftTicks: number;
}

export interface TrackTimes {
  /**
   * Returns the decode time that the sample gets: its own if it increases, else the next possible.
   * @throws ServiceError `upstream_invalid` for times too far apart for an MP4: 2^32 ticks between
   * samples, 2^31 between decode and presentation time.
   */
  add(sample: Sample): number;
  /** Whether a sample is presented. */
  readonly isPresented: boolean;
  /** To be called if a sample is presented. */
  index(): TimesIndex;
}

/**
 * `keepsOffsets`: composition offsets stay as they are unless one is negative, since readers apply edits in
 * terms of them; else the least becomes 0. A sample lasts until the next is decoded; the last has its own duration, or that of the one before.
 */
export function createTrackTimes(timescale: number, keepsOffsets = false): TrackTimes {
  const durations = createRunLengths();
  const compositions = createRunLengths();
  let first: number | undefined;
  let last = { dts: 0, pts: 0, duration: 0, isHidden: false };
  let step = 0;
  let leastComposition = Infinity;
  /** Where the media end, on the presentation timeline plus the run's shift. */
  let mediaEnd = -Infinity;
  let run: PresentedRun = { startTicks: Infinity, endTicks: -Infinity, shiftTicks: 0 };
  const runs = [run];
  let hasHidden = false;

  function lastStep(): number {
    return last.duration || step || 1;
  }

  /** Returns where the run ends if the last sample lasts so long. */
  function endAfter(ticks: number): number {
    return last.isHidden ? run.endTicks : Math.max(run.endTicks, last.pts + ticks - run.shiftTicks);
  }

  function endLast(ticks: number): void {
    mediaEnd = Math.max(mediaEnd, last.pts + ticks, last.dts + ticks);
    run.endTicks = endAfter(ticks);
  }

  /** Hidden samples get media time of their own, which the presentation leaves out. */
  function startRun(from: number): void {
    endLast(lastStep());
    run = { startTicks: Infinity, endTicks: -Infinity, shiftTicks: Math.max(0, mediaEnd - from) };
    runs.push(run);
  }

  return {
    add({ dts: wanted, pts: shown, duration, isHidden = false, isJump = false }) {
      const isNewRun = isJump && first !== undefined;
      if (isNewRun) startRun(Math.min(wanted, shown));
      hasHidden ||= isHidden;
      const { shiftTicks } = run;
      const ticks = wanted + shiftTicks;
      const dts = first === undefined ? ticks : Math.max(ticks, last.dts + 1);
      // A sample that is decoded later is shown no earlier: all others would be delayed by its offset.
      const pts = dts > ticks ? Math.max(shown + shiftTicks, dts) : shown + shiftTicks;
      if (first === undefined) {
        first = dts;
      } else {
        step = within(dts - last.dts, 0, 2 ** 32 - 1, "between two samples", timescale);
        durations.push(step);
        if (!isNewRun) endLast(step);
      }
      const composition = pts - dts;
      within(composition, -(2 ** 31), 2 ** 31 - 1, "between decode and presentation", timescale);
      compositions.push(composition);
      leastComposition = Math.min(leastComposition, composition);
      if (!isHidden) run.startTicks = Math.min(run.startTicks, shown);
      last = { dts, pts, duration, isHidden };
      return dts;
    },
    get isPresented() {
      return runs.some(({ startTicks }) => startTicks < Infinity);
    },
    index() {
      const ended = [...runs.slice(0, -1), { ...run, endTicks: endAfter(lastStep()) }];
      const shown = ended.filter(({ startTicks }) => startTicks < Infinity);
      const base = keepsOffsets ? Math.min(0, leastComposition) : leastComposition;
      return {
        durations: durations.pairs(lastStep()),
        compositions: aboveLeast(compositions.pairs(), base),
        mediaTicks: last.dts - first! + lastStep(),
        startTicks: Math.min(...shown.map(({ startTicks }) => startTicks)),
        endTicks: Math.max(...shown.map(({ endTicks }) => endTicks)),
        runs: hasHidden ? shown : null,
        firstTicks: first!,
        zeroTicks: -first! - base,
      };
    },
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
