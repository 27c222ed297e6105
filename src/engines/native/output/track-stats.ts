import type { Edit, Sample, SampleSink, TrackFormat, TrackKind } from "../../../remux/samples.ts";

/** What the samples of a track were, as the demuxer wrote them. */
export interface TrackStats {
  kind: TrackKind;
  samples: number;
  /** Start of the first sample and end of the last in presentation order, or what edits make of them, seconds. */
  startS: number;
  endS: number;
  /** Samples that should be decoded no later than the one before; of audio, over two samples earlier. */
  outOfOrder: number;
  /** Samples with the presentation time of another one nearby. */
  sameTime: number;
  /** Times without samples of more than a second, presentation time. */
  gaps: TrackGaps;
  /** From the last sample before segments that were left out to the first one after them. */
  skips: readonly { fromS: number; toS: number }[];
}

export interface TrackGaps {
  count: number;
  totalS: number;
  /** The first few. */
  first: { fromS: number; toS: number }[];
}

/**
 * A shorter time without samples is common where advertisements are joined, and hardly noticed; a segment
 * that was lost is rarely shorter.
 */
export const shortestGapS = 1;
const maxGapsShown = 3;

/**
 * A sink that passes everything on, and counts what one source writes: a few comparisons for each sample,
 * nothing is kept.
 */
export class CountingSink implements SampleSink {
  /** How often media were left out, also of tracks without samples. */
  readonly drops: Record<TrackKind, number> = { video: 0, audio: 0 };
  /** Audio tracks that were left out. */
  left = 0;
  /** Latest decode time of all tracks, seconds. */
  reachedS = 0;
  readonly #sink: SampleSink;
  readonly #tracks = new Map<number, TrackCounter>();

  constructor(sink: SampleSink) {
    this.#sink = sink;
  }

  setFormat(format: TrackFormat, track?: number): number {
    const number = this.#sink.setFormat(format, track);
    const counter = this.#tracks.get(number);
    if (counter === undefined) this.#tracks.set(number, new TrackCounter(format));
    else if (counter.edits !== format.edits) counter.edits = undefined;
    return number;
  }

  write(track: number, sample: Sample): void {
    this.#sink.write(track, sample);
    const counter = this.#tracks.get(track);
    if (counter === undefined) return;
    this.reachedS = Math.max(this.reachedS, sample.dts / counter.timescale);
    counter.add(sample);
  }

  /** Notes that segments are left out before the next samples. */
  skip(): void {
    for (const counter of this.#tracks.values()) counter.skip();
  }

  /** Whether a track of the kind has been found. */
  has(kind: TrackKind): boolean {
    return this.#tracks.values().some((counter) => counter.kind === kind);
  }

  /** Returns the stats of each track that has samples to show. */
  tracks(): TrackStats[] {
    return [...this.#tracks.values()].flatMap((counter) => counter.stats() ?? []);
  }
}

/** As far apart as frames are reordered (H.264 and HEVC: 16). */
const neighbours = 16;

class TrackCounter {
  readonly kind: TrackKind;
  readonly timescale: number;
  /** What of the samples is presented; default: all. */
  edits: TrackFormat["edits"];
  readonly #recent = new Float64Array(neighbours).fill(Number.NaN);
  readonly #gaps: TrackGaps = { count: 0, totalS: 0, first: [] };
  #samples = 0;
  #firstDts = 0;
  #outOfOrder = 0;
  #sameTime = 0;
  #start = Infinity;
  #end = -Infinity;
  #last = { dts: 0, pts: 0, duration: 0 };
  readonly #skips: { fromS: number; toS: number }[] = [];
  #isSkipping = false;
  /** Hidden samples, which are never presented, came after the last one. */
  #isAfterHidden = false;
  /** The latest distance of two samples that is no gap; 0: not known yet. */
  #step = 0;

  constructor({ kind, timescale, edits }: TrackFormat) {
    this.kind = kind;
    this.timescale = timescale;
    this.edits = edits;
  }

  add(sample: Sample): void {
    const { dts, pts, duration, isHidden = false, isJump = false, primingTicks = 0 } = sample;
    if (isHidden) {
      this.#samples += 1;
      this.#isAfterHidden = true;
      return;
    }
    if (this.#samples === 0) this.#firstDts = dts;
    const isJoined = this.#isAfterHidden || isJump;
    const isNext = this.#samples > 0 && !isJoined && !this.#isSkipping;
    const last = this.#last;
    if (this.#isSkipping) this.#endSkip(Math.min(dts, pts));
    if (isNext) {
      this.#compare(sample);
      this.#addStep(dts - last.dts, last.pts - last.dts);
    } else if (isJoined && !this.#isSkipping) this.#addStep(pts - last.pts, 0);
    this.#isSkipping = false;
    this.#recent[this.#samples % neighbours] = pts;
    this.#samples += 1;
    this.#isAfterHidden = false;
    this.#start = Math.min(this.#start, pts + primingTicks);
    this.#end = Math.max(this.#end, pts + (duration || this.#step));
    // The decode time as the writer corrects it.
    this.#last = { dts: isNext ? Math.max(dts, last.dts + 1) : dts, pts, duration };
  }

  skip(): void {
    this.#isSkipping = this.#samples > 0;
  }

  #endSkip(ticks: number): void {
    this.#skips.push({ fromS: this.#end / this.timescale, toS: ticks / this.timescale });
  }

  /** Compares the times of a sample with those of the samples before it. */
  #compare({ dts, pts }: Sample): void {
    const { dts: lastDts, duration } = this.#last;
    // Where parts are joined, audio often overlaps by a sample of priming and a part of the last one.
    const allowed = this.kind === "audio" ? 2 * Math.max(duration, this.#step) : 0;
    if (dts <= lastDts - allowed) this.#outOfOrder += 1;
    else if (this.kind === "video" && this.#recent.includes(pts)) this.#sameTime += 1;
  }

  /** `lead`: how much later the last sample was presented than decoded. */
  #addStep(distance: number, lead: number): void {
    const { dts, duration } = this.#last;
    const usual = duration || this.#step;
    const lost = distance - usual;
    if (usual <= 0 || lost <= shortestGapS * this.timescale) {
      if (distance > 0) this.#step = distance;
      return;
    }
    const fromS = (dts + usual + lead) / this.timescale;
    const lostS = lost / this.timescale;
    this.#gaps.count += 1;
    this.#gaps.totalS += lostS;
    if (this.#gaps.first.length < maxGapsShown) this.#gaps.first.push({ fromS, toS: fromS + lostS });
  }

  /** Returns undefined if no sample is shown. */
  stats(): TrackStats | undefined {
    if (this.#end === -Infinity) return undefined;
    const { start, end } = this.#presented();
    return {
      kind: this.kind,
      samples: this.#samples,
      startS: start / this.timescale,
      endS: end / this.timescale,
      outOfOrder: this.#outOfOrder,
      sameTime: this.#sameTime,
      gaps: this.#gaps,
      skips: this.#skips,
    };
  }

  /** Returns where the presentation starts and ends, ticks. */
  #presented(): { start: number; end: number } {
    const [first, ...others] = this.edits ?? [];
    if (first === undefined) return { start: this.#start, end: this.#end };
    const mediaTicks = this.#end - this.#firstDts;
    const lasts = (edit: Edit) => Math.max(0, Math.min(edit.durationTicks, mediaTicks - edit.mediaTicks));
    const start = this.#firstDts + first.mediaTicks;
    const after = others.reduce((sum, edit) => sum + edit.emptyTicks + lasts(edit), 0);
    return { start, end: start + lasts(first) + after };
  }
}
