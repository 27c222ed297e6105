import { ServiceError } from "../../../model/errors.ts";
import { createRunLengths } from "./number-lists.ts";
import type { Sample } from "../../samples.ts";

/** Times of a track in its ticks, as its index has them. */
export interface TimesIndex {
  /** Counts and decode durations in turn (`stts`). */
  durations: Uint32Array;
  /** Counts and composition offsets in turn (`ctts`), none of them negative. */
  compositions: Uint32Array;
  /** Sum of the decode durations. */
  mediaTicks: number;
  /** Start of the first sample and end of the last in presentation order, without hidden ones and stated priming. */
  startTicks: number;
  endTicks: number;
  /** Its samples state how much of them is priming. */
  hasPriming: boolean;
  /** The spans of samples between which others are hidden, in order; `null`: none is hidden. */
  spans: readonly PresentedSpan[] | null;
  /** Decode time of the first sample, and how much later it is presented. */
  firstTicks: number;
  firstComposition: number;
  /** Media time (ISO/IEC 14496-12 §8.6.6) of the presentation time 0. */
  zeroTicks: number;
}

/** Samples that are presented one after the other, in ticks. */
export interface PresentedSpan {
  startTicks: number;
  endTicks: number;
  /** How much more time the media have before it than the presentation. */
  shiftTicks: number;
  /** Where the media of its samples begin, of hidden ones too, on the presentation timeline plus `shiftTicks`. */
  mediaTicks: number;
  /** Where hidden samples follow in the media; Infinity: none do. */
  tailTicks: number;
}

const newSpan = (shiftTicks: number): PresentedSpan => ({
  startTicks: Infinity,
  endTicks: -Infinity,
  shiftTicks,
  mediaTicks: Infinity,
  tailTicks: Infinity,
});

export class TrackTimes {
  readonly #timescale: number;
  readonly #keepsOffsets: boolean;
  readonly #durations = createRunLengths();
  readonly #compositions = createRunLengths();
  #first: number | undefined;
  #last = { dts: 0, pts: 0, duration: 0, isHidden: false };
  #step = 0;
  #leastComposition = Infinity;
  #firstComposition: number | undefined;
  /** Where the media end, on the presentation timeline plus the span's shift. */
  #mediaEnd = -Infinity;
  #span = newSpan(0);
  readonly #spans = [this.#span];
  #hasHidden = false;
  #hasHiddenTime = false;
  #hasPriming = false;

  /**
   * `keepsOffsets`: composition offsets stay as they are unless one is negative, since readers apply edits in
   * terms of them; else the least becomes 0. A sample lasts until the next is decoded; the last has its own duration, or that of the one before.
   */
  constructor(timescale: number, keepsOffsets: boolean) {
    this.#timescale = timescale;
    this.#keepsOffsets = keepsOffsets;
  }

  /**
   * Returns the decode time that the sample gets: its own if it increases, else the next possible.
   * @throws ServiceError `upstream_invalid` for times too far apart for an MP4: 2^32 ticks between
   * samples, 2^31 between decode and presentation time.
   */
  add(sample: Sample): number {
    const { dts: wanted, pts: shown, duration, isHidden = false, isJump = false, primingTicks = 0 } = sample;
    const isNewSpan = isJump && this.#first !== undefined;
    if (isNewSpan) this.#startSpan(Math.min(wanted, shown));
    this.#hasHidden ||= isHidden;
    this.#hasHiddenTime ||= isHidden && (this.#first !== undefined || duration > 0);
    const { shiftTicks } = this.#span;
    const ticks = wanted + shiftTicks;
    const dts = this.#first === undefined ? ticks : Math.max(ticks, this.#last.dts + 1);
    // A sample that is decoded later is shown no earlier: all others would be delayed by its offset.
    const pts = dts > ticks ? Math.max(shown + shiftTicks, dts) : shown + shiftTicks;
    if (this.#first === undefined) {
      this.#first = dts;
    } else {
      this.#step = this.#within(dts - this.#last.dts, 0, 2 ** 32 - 1, "between two samples");
      this.#durations.push(this.#step);
      if (!isNewSpan) this.#endLast(this.#step);
    }
    const composition = pts - dts;
    this.#within(composition, -(2 ** 31), 2 ** 31 - 1, "between decode and presentation");
    this.#compositions.push(composition);
    this.#firstComposition ??= composition;
    this.#span.mediaTicks = Math.min(this.#span.mediaTicks, pts);
    this.#leastComposition = Math.min(this.#leastComposition, composition);
    const isShown = !isHidden && (primingTicks === 0 || primingTicks < duration);
    const isTail = isHidden && shown > this.#span.startTicks;
    if (isTail) this.#span.tailTicks = Math.min(this.#span.tailTicks, shown);
    if (isShown) this.#span.startTicks = Math.min(this.#span.startTicks, shown + primingTicks);
    this.#hasPriming ||= primingTicks > 0;
    this.#last = { dts, pts, duration, isHidden };
    return dts;
  }

  get isPresented(): boolean {
    return this.#spans.some(({ startTicks }) => startTicks < Infinity);
  }

  /** Samples are only needed to decode others, and are more than a first one that lasts a tick. */
  get hasHiddenTime(): boolean {
    return this.#hasHiddenTime;
  }

  /** Decode time of the last sample. */
  get lastTicks(): number {
    return this.#last.dts;
  }

  /** Returns a function that returns how long one sample after the other is decoded, and how much later it is presented. */
  reader(): () => { ticks: number; composition: number } {
    const durations = this.#durations.reader();
    const compositions = this.#compositions.reader();
    return () => ({ ticks: durations() ?? this.#lastStep(), composition: (compositions() ?? 0) | 0 });
  }

  /** To be called if a sample is presented. */
  index(): TimesIndex {
    const first = this.#first ?? 0;
    const lastStep = this.#lastStep();
    const ended = [...this.#spans.slice(0, -1), { ...this.#span, endTicks: this.#endAfter(lastStep) }];
    const shown = ended.filter(({ startTicks }) => startTicks < Infinity);
    const base = this.#keepsOffsets ? Math.min(0, this.#leastComposition) : this.#leastComposition;
    return {
      durations: this.#durations.pairs(lastStep),
      compositions: aboveLeast(this.#compositions.pairs(), base),
      mediaTicks: this.#last.dts - first + lastStep,
      startTicks: Math.min(...shown.map(({ startTicks }) => startTicks)),
      endTicks: Math.max(...shown.map(({ endTicks }) => endTicks)),
      hasPriming: this.#hasPriming,
      spans: this.#hasHidden ? shown : null,
      firstTicks: first,
      firstComposition: this.#firstComposition ?? 0,
      zeroTicks: -first - base,
    };
  }

  #lastStep(): number {
    return this.#last.duration || this.#step || 1;
  }

  /** Returns where the span ends if the last sample lasts so long. */
  #endAfter(ticks: number): number {
    const { endTicks, shiftTicks } = this.#span;
    const { isHidden, pts } = this.#last;
    return isHidden ? endTicks : Math.max(endTicks, pts + ticks - shiftTicks);
  }

  #endLast(ticks: number): void {
    this.#mediaEnd = Math.max(this.#mediaEnd, this.#last.pts + ticks, this.#last.dts + ticks);
    this.#span.endTicks = this.#endAfter(ticks);
  }

  /** Hidden samples get media time of their own, which the presentation leaves out; time between the spans has some, too. */
  #startSpan(from: number): void {
    this.#endLast(this.#lastStep());
    const { endTicks } = this.#span;
    const shiftTicks = Math.max(0, this.#mediaEnd - (endTicks > -Infinity ? Math.min(from, endTicks) : from));
    this.#span = newSpan(shiftTicks);
    this.#spans.push(this.#span);
  }

  #within(ticks: number, least: number, most: number, what: string): number {
    if (ticks >= least && ticks <= most) return ticks;
    throw new ServiceError(
      "upstream_invalid",
      `the media times are damaged: ${Math.round(ticks / this.#timescale)} s ${what}`,
    );
  }
}

function aboveLeast(pairs: Uint32Array, least: number): Uint32Array {
  return pairs.map((value, i) => (i % 2 === 0 ? value : (value | 0) - least));
}
