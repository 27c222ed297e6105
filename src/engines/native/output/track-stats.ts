import type { Edit, MediaRange, Sample, TrackFormat, TrackKind } from "../../../remux/samples.ts";
import { nameCodec } from "../../../remux/codec-name.ts";
import type { ListedSegments } from "./listed-segments.ts";

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
  /** Samples whose times were guessed, and may be those of others. */
  guessed: number;
  /** Times without samples, presentation time. */
  gaps: TrackGaps;
  /** From the last sample before segments that were left out to the earliest one after them, as presented; a tick less, as times are rounded. */
  skips: readonly { fromS: number; toS: number }[];
}

interface TrackGaps {
  count: number;
  totalS: number;
  /** The first few. */
  first: { fromS: number; toS: number }[];
}

const maxGapsShown = 3;
/** A break in frames that come at equal distances is a gap, even if it is short: some of them were lost. */
const shortestBreakS = 0.1;
/** How many equal distances must come before a break. */
const steadySteps = 12;
/** Frames with more breaks do not come at equal distances. */
const maxBreaks = (samples: number): number => 3 + samples / 500;

/** As far apart as frames are reordered (H.264 and HEVC: 16). */
const neighbours = 16;

const losslessCodecs: ReadonlySet<string> = new Set(["fLaC", "alac"]);
const lossyCodecs: ReadonlySet<string> = new Set(["AAC", "MPEG audio", ".mp3", "AC-3", "E-AC-3", "Opus", "Vorbis"]);

/** More than demuxers hold back. */
const maxHeld = 64;

export class TrackCounter {
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
  #guessed = 0;
  #start = Infinity;
  #end = -Infinity;
  #last = { dts: 0, pts: 0, duration: 0 };
  readonly #skips: { fromS: number; toS: number }[] = [];
  #isSkipping = false;
  /** Hidden samples, which are never presented, came after the last one. */
  #isAfterHidden = false;
  /** The latest distance of two samples that is no gap; 0: not known yet. */
  #step = 0;
  /** How often in a row it was the same. */
  #steady = 0;
  readonly #breaks: TrackGaps = { count: 0, totalS: 0, first: [] };
  /** The latest break after fewer steady steps: it counts if those after it make up for them. */
  #early: { from: number; lost: number; step: number; steady: number } | null = null;
  /** How many of the next samples may have breaks: parts were joined, or media are known to be left out. */
  #breakable = 0;
  /** Where what was before ends, if the first of these are decoded earlier than that: they are in another order. */
  #joinEnd: number | null = null;
  readonly #segments: ListedSegments;
  /** Audio may overlap by this many packets where parts are joined: a part of the last one, and one of priming if its codec has that. */
  readonly #overlapping: number;
  /** None of its packets holds much more than others: those of PCM have as much as their writer likes. */
  readonly #isBounded: boolean;

  constructor({ kind, timescale, edits, sampleEntry }: TrackFormat, segments: ListedSegments) {
    this.#segments = segments;
    const codec = nameCodec(sampleEntry);
    this.#overlapping = losslessCodecs.has(codec) ? 1 : 2;
    this.#isBounded = losslessCodecs.has(codec) || lossyCodecs.has(codec);
    this.kind = kind;
    this.timescale = timescale;
    this.edits = edits;
  }

  add(sample: Sample): void {
    const { dts, pts, isHidden = false, isJump = false, isGuessed = false, primingTicks = 0 } = sample;
    const duration = this.#heldBy(sample);
    if (isGuessed) this.#guessed += 1;
    if (isHidden) {
      this.#samples += 1;
      this.#isAfterHidden = true;
      return;
    }
    if (this.#samples === 0) this.#firstDts = dts;
    const isJoined = this.#isAfterHidden || isJump;
    const isNext = this.#samples > 0 && !isJoined && !this.#isSkipping;
    const last = this.#last;
    const firstS = (pts - 1) / this.timescale;
    if (this.#isSkipping) this.#skips.push({ fromS: this.#end / this.timescale, toS: firstS });
    const skip = this.#skips.at(-1);
    if (skip !== undefined) skip.toS = Math.min(skip.toS, firstS);
    if (isNext) {
      this.#compare(sample);
      this.#addStep(dts - last.dts, pts);
    } else if (isJoined && !this.#isSkipping) this.#addStep(pts - last.pts, pts);
    this.#isSkipping = false;
    this.#recent[this.#samples % neighbours] = pts;
    this.#samples += 1;
    this.#isAfterHidden = false;
    this.#start = Math.min(this.#start, pts + primingTicks);
    this.#end = Math.max(this.#end, pts + (duration || this.#step));
    // The decode time as the writer corrects it.
    this.#last = { dts: isNext ? Math.max(dts, last.dts + 1) : dts, pts, duration };
  }

  /** How long a sample lasts: no packet of audio holds so much more than that before it as is a gap, whatever its container states. */
  #heldBy({ duration }: Sample): number {
    const isLong =
      this.#isBounded && this.#step > 0 && duration - this.#step > this.#segments.shortestGapS * this.timescale;
    return isLong ? this.#step : duration;
  }

  skip(): void {
    this.#isSkipping = this.#samples > 0;
  }

  /** Notes that another part is joined, or that media are left out; some samples before that may be held back. */
  allowBreaks(): void {
    this.#breakable = maxHeld;
    this.#joinEnd = null;
  }

  get span(): MediaRange {
    return { startS: this.#start / this.timescale, endS: this.#end / this.timescale };
  }

  /** The latest frames have come at equal distances. */
  get isSteady(): boolean {
    return this.#steady >= steadySteps;
  }

  /** Compares the times of a sample with those of the samples before it. */
  #compare({ dts, pts }: Sample): void {
    const { dts: lastDts, duration } = this.#last;
    const allowed = this.kind === "audio" ? this.#overlapping * Math.max(duration, this.#step) : 0;
    // It lasts until this one, so not at all: parts that overlap state how long their frames last.
    const isWithoutTime = this.kind === "audio" && duration === 0 && dts <= lastDts;
    // The first packet of Vorbis only prepares a decoder.
    if (isWithoutTime && dts === lastDts && this.#samples === 1) return;
    if (dts <= lastDts - allowed && !this.#isShownAfterJoin(pts)) this.#outOfOrder += 1;
    else if (isWithoutTime || (this.kind === "video" && this.#recent.includes(pts))) this.#sameTime += 1;
  }

  /** Whether a picture that is decoded too early is shown after all those before parts were joined. */
  #isShownAfterJoin(pts: number): boolean {
    if (this.kind !== "video" || this.#breakable <= 0) return false;
    this.#joinEnd ??= this.#end;
    return pts >= this.#joinEnd;
  }

  /** `distance`: from the last sample to one that is presented at `pts`. */
  #addStep(distance: number, pts: number): void {
    const { duration } = this.#last;
    const usual = duration || this.#step;
    const lost = distance - usual;
    // A file that is published as a whole has the breaks that it has.
    const isChecked = this.#breakable <= 0 && this.#segments.isListed;
    const isBreak = isChecked && lost > Math.max(shortestBreakS * this.timescale, usual);
    this.#breakable -= 1;
    const from = () => this.#lastBefore(lost, pts) + usual;
    if (usual > 0 && lost > this.#segments.shortestGapS * this.timescale) this.#addGap(this.#gaps, from(), lost);
    else if (isBreak && this.isSteady) this.#addGap(this.#breaks, from(), lost);
    else if (distance > 0) {
      if (isBreak && this.#steady > 0) this.#early = { from: from(), lost, step: usual, steady: this.#steady };
      this.#steady = isSameStep(distance, this.#step) ? this.#steady + 1 : 0;
      this.#step = distance;
      this.#confirmEarly();
    }
  }

  #confirmEarly(): void {
    if (this.#early === null || this.#steady === 0) return;
    const { from, lost, step, steady } = this.#early;
    const isSame = isSameStep(this.#step, step);
    if (isSame && steady + this.#steady < steadySteps) return;
    if (isSame) this.#addGap(this.#breaks, from, lost);
    this.#early = null;
  }

  /** Returns when the last sample before a gap is presented; frames after the gap may have been decoded before it. */
  #lastBefore(lost: number, pts: number): number {
    const times = [...this.#recent, pts].filter((time) => !Number.isNaN(time)).toSorted((a, b) => a - b);
    const after = times.findLastIndex((time, i) => i > 0 && time - times[i - 1]! >= lost);
    return times[after - 1] ?? this.#last.pts;
  }

  #addGap(gaps: TrackGaps, from: number, lost: number): void {
    const fromS = from / this.timescale;
    const lostS = lost / this.timescale;
    gaps.count += 1;
    gaps.totalS += lostS;
    if (gaps.first.length < maxGapsShown) gaps.first.push({ fromS, toS: fromS + lostS });
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
      guessed: this.#guessed,
      gaps: this.#allGaps(),
      skips: this.#skips,
    };
  }

  #allGaps(): TrackGaps {
    const [gaps, breaks] = [this.#gaps, this.#breaks];
    if (breaks.count === 0 || breaks.count > maxBreaks(this.#samples)) return gaps;
    const first = [...gaps.first, ...breaks.first].toSorted((a, b) => a.fromS - b.fromS).slice(0, maxGapsShown);
    return { count: gaps.count + breaks.count, totalS: gaps.totalS + breaks.totalS, first };
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

const isSameStep = (distance: number, step: number): boolean => Math.abs(distance - step) <= step / 8;
