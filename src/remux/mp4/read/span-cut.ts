import type { MediaRange, Sample, SegmentTiming, TrackFormat } from "../../samples.ts";
import type { TrackOutput } from "../../track-output.ts";
import type { IndexedSample } from "./indexed-sample.ts";
import { secondsOf } from "./init.ts";
import { createVideoJoins } from "../joins.ts";

/** More frames than a decoder holds back to sort them. */
const maxTail = 32;
/** Longer than the priming of any encoder. */
const maxPrimingS = 0.2;
/** So long before the start of a Period, dash.js and Shaka Player present what it has. */
const maxEarlyS = 0.1;

/**
 * Writes what is presented within the span of its timeline. Video samples outside that others need are
 * written hidden; audio outside is left out, except the priming of the decoder, and what fills the end of the span before.
 */
class SpanCut {
  readonly #output: TrackOutput;
  readonly #joins: ReturnType<typeof createVideoJoins>;
  #timeline: number | undefined;
  /** From the latest sync sample before the span on. */
  #lead = createQueue();
  /** After the end of the span. */
  #tail = createQueue();
  /** The last samples of the span and those after its end that they need, until it is known what follows. */
  #end = createQueue();
  /** There were such samples of the current span. */
  #isEnding = false;
  /** Where what is presented ends, in ticks. */
  #presentedEnd = -Infinity;
  #hasBegun = false;
  #hasEnded = false;
  #lastPts = -Infinity;
  /** The hidden samples between the last and the next one take media time. */
  #isJump = false;
  /** The next sample of the span does not continue those before. */
  #isJoin = false;

  constructor(output: TrackOutput) {
    this.#output = output;
    this.#joins = createVideoJoins(output);
  }

  /** The next sample of video does not continue those before. */
  begin(): void {
    this.#isJoin = true;
  }

  /** `isPriming`: the media themselves say that the sample is not presented. */
  write(format: TrackFormat, sample: Sample, timing: SegmentTiming, isPriming: boolean): void {
    const { timeline, span } = timing;
    if (timeline !== this.#timeline) this.#startSpan(timeline);
    const isVideo = format.kind === "video";
    const held = { format, sample, isJoin: isVideo && this.#isJoin };
    if (span === undefined) {
      this.#putNow(held, sample.isHidden, sample.isJump);
      return;
    }
    const { timescale } = this.#output;
    // A segment that is listed twice, or by two Periods.
    if (this.#hasEnded || (!isVideo && sample.pts <= this.#lastPts)) return;
    // Most of a frame must be in the span: the times in manifests are rounded.
    const slack = isVideo ? sample.duration / 4 : timescale / 1000;
    if (sample.pts >= span.endS * timescale - slack) {
      this.#hasEnded = !isVideo || !this.#tail.add(held) || this.#tail.samples.length > maxTail;
    } else if (sample.pts >= span.startS * timescale - slack) {
      this.#putLead();
      if (this.#isEnding || this.#tail.samples.length > 0) this.#putLater(held);
      else this.#put(held, false);
    } else if (isVideo) {
      this.#putBefore(held);
    } else if (isPriming ? sample.pts >= (span.startS - maxPrimingS) * timescale : this.#fillsEnd(sample, span)) {
      this.#put(held, false);
    }
  }

  /** Whether audio before the span is heard where the span before has none: packagers cut audio where its frames end, players present it. */
  #fillsEnd({ pts }: Sample, { startS }: MediaRange): boolean {
    const { timescale } = this.#output;
    const earliest = (startS - maxEarlyS) * timescale;
    return this.#presentedEnd >= earliest && pts >= this.#presentedEnd - timescale / 1000;
  }

  /** Writes what is held back of the last span. */
  flush(): void {
    this.#putEnd(-Infinity);
  }

  #startSpan(timeline: number): void {
    this.#timeline = timeline;
    this.#isJump ||= this.#isEnding;
    this.#isEnding = false;
    this.#lead = createQueue();
    this.#tail = createQueue();
    this.#hasBegun = false;
    this.#hasEnded = false;
    this.#lastPts = -Infinity;
  }

  #put(held: HeldSample, isHidden: boolean): void {
    this.#putEnd(held.sample.pts);
    this.#putNow(held, isHidden, this.#isJump);
    this.#isJump = false;
  }

  #putNow({ format, sample, isJoin }: HeldSample, isHidden = false, isJump = false): void {
    if (isJoin && this.#isJoin) {
      this.#joins.begin();
      this.#isJoin = false;
    }
    this.#joins.setFormat(format);
    this.#joins.write({ ...sample, ...(isHidden && { isHidden }), ...(isJump && { isJump }) });
    this.#hasBegun = true;
    this.#lastPts = sample.pts;
    if (!isHidden) this.#presentedEnd = Math.max(this.#presentedEnd, endOf(sample));
  }

  #putBefore(held: HeldSample): void {
    if (this.#hasBegun) {
      this.#put(held, true);
      return;
    }
    if (held.sample.isSync) this.#lead = createQueue();
    if (!this.#lead.add(held)) this.#putLead();
  }

  #putLead(): void {
    const { samples } = this.#lead;
    this.#isJump ||= samples.length > 0 && !this.#hasBegun;
    for (const held of samples) this.#put(held, true);
    if (samples.length > 0) this.#lead = createQueue();
  }

  /** Holds back a sample of the span, and those after its end that come before it, which it may need. */
  #putLater(held: HeldSample): void {
    const before = this.#tail.samples.map((sample) => ({ ...sample, isHidden: true }));
    this.#tail = createQueue();
    this.#isEnding = true;
    const hasSpace = [...before, held].map((sample) => this.#end.add(sample)).every(Boolean);
    if (!hasSpace || this.#end.samples.length > maxTail) this.#putEnd(-Infinity);
  }

  /**
   * Writes what is held back. Those after the end of the span are moved by the time until something else is presented, at
   * `next`: its last picture lasts as long.
   */
  #putEnd(next: number): void {
    const { samples } = this.#end;
    this.#end = createQueue();
    const presented = samples.filter(({ isHidden = false }) => !isHidden);
    const end = presented.reduce((latest, { sample }) => Math.max(latest, endOf(sample)), this.#presentedEnd);
    const gap = Math.max(0, next - end);
    for (const { isHidden = false, sample, ...held } of samples) {
      const pts = sample.pts + (isHidden ? gap : 0);
      this.#putNow({ ...held, sample: { ...sample, pts } }, isHidden);
    }
  }
}

const endOf = ({ pts, duration }: Sample): number => pts + duration;

/** A sample that is written only if one follows that needs it. */
interface HeldSample {
  format: TrackFormat;
  sample: Sample;
  /** It may be the first one that does not continue those before. */
  isJoin: boolean;
  isHidden?: boolean;
}

const maxHeldBytes = 32 << 20;

function createQueue() {
  const samples: HeldSample[] = [];
  let bytes = 0;
  return {
    samples,
    /** Adds a copy; returns false if it is the last one that fits. */
    add(held: HeldSample): boolean {
      const { sample } = held;
      bytes += sample.data.length;
      samples.push({ ...held, sample: { ...sample, data: Uint8Array.from(sample.data) } });
      return bytes < maxHeldBytes;
    },
  };
}

/** Keeps the cut of each slot, and notes there where samples do not continue those before. */
export function createCuts() {
  const slots = new Map<string, Slot>();
  let breaks = 0;
  return {
    /** The next samples may not continue the media times. */
    noteBreak(): void {
      breaks += 1;
    },
    of(sample: IndexedSample, output: TrackOutput): SpanCut {
      const { track, dts, duration } = sample;
      const slot = slots.get(track.slot) ?? { cut: new SpanCut(output), breaks, endS: NaN };
      if (slot.breaks !== breaks && !isNext(slot.endS, sample)) slot.cut.begin();
      slots.set(track.slot, { cut: slot.cut, breaks, endS: secondsOf(track, dts + duration) });
      return slot.cut;
    },
    flush: () => slots.forEach(({ cut }) => cut.flush()),
  };
}

interface Slot {
  cut: SpanCut;
  /** Up to its latest sample. */
  breaks: number;
  /** Media time at which its latest sample has been decoded, seconds. */
  endS: number;
}

/** Whether nothing is missing between what was decoded by `endS`, media time, and this sample, so that it may refer to that. */
function isNext(endS: number, { track, dts, duration }: IndexedSample): boolean {
  return Math.abs(secondsOf(track, dts) - endS) <= secondsOf(track, duration) / 2;
}
