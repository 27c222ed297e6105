import type { Sample, SegmentTiming, TrackFormat } from "../../samples.ts";
import type { TrackOutput } from "../../track-output.ts";

/** More frames than a decoder holds back to sort them. */
const maxTail = 32;
/** Longer than the priming of any encoder. */
const maxPrimingS = 0.2;

/**
 * Writes what is presented within the span of its timeline. Video samples outside that others need are
 * written hidden; audio outside is left out, except the priming of the decoder.
 */
export class SpanCut {
  readonly #output: TrackOutput;
  #timeline: number | undefined;
  /** From the latest sync sample before the span on. */
  #lead = createQueue();
  /** After the end of the span. */
  #tail = createQueue();
  #hasBegun = false;
  #hasEnded = false;
  #lastPts = -Infinity;
  /** Samples after the end have been written. */
  #hasTail = false;
  /** The hidden samples between the last and the next one take media time. */
  #isJump = false;

  constructor(output: TrackOutput) {
    this.#output = output;
  }

  /** `isPriming`: the media themselves say that the sample is not presented. */
  write(format: TrackFormat, sample: Sample, timing: SegmentTiming, isPriming: boolean): void {
    const { timeline, span } = timing;
    if (timeline !== this.#timeline) this.#startSpan(timeline);
    if (span === undefined) {
      this.#output.setFormat(format);
      this.#output.write(sample);
      return;
    }
    const { timescale } = this.#output;
    const isVideo = format.kind === "video";
    // A segment that is listed twice, or by two Periods.
    if (this.#hasEnded || (!isVideo && sample.pts <= this.#lastPts)) return;
    const held = { format, sample };
    // Most of a frame must be in the span: the times in manifests are rounded.
    const slack = isVideo ? sample.duration / 4 : timescale / 1000;
    if (sample.pts >= span.endS * timescale - slack) {
      this.#hasEnded = !isVideo || !this.#tail.add(held) || this.#tail.samples.length > maxTail;
    } else if (sample.pts >= span.startS * timescale - slack) {
      this.#putLead();
      this.#putTail();
      this.#put(held, false);
    } else if (isVideo) {
      this.#putBefore(held);
    } else if (isPriming && sample.pts >= (span.startS - maxPrimingS) * timescale) {
      this.#put(held, false);
    }
  }

  #startSpan(timeline: number): void {
    this.#timeline = timeline;
    this.#isJump ||= this.#hasTail;
    this.#hasTail = false;
    this.#lead = createQueue();
    this.#tail = createQueue();
    this.#hasBegun = false;
    this.#hasEnded = false;
    this.#lastPts = -Infinity;
  }

  #put({ format, sample }: HeldSample, isHidden: boolean): void {
    const isJump = this.#isJump;
    this.#output.setFormat(format);
    this.#output.write({ ...sample, ...(isHidden && { isHidden }), ...(isJump && { isJump }) });
    this.#hasBegun = true;
    this.#isJump = false;
    this.#lastPts = sample.pts;
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

  #putTail(): void {
    const { samples } = this.#tail;
    this.#hasTail ||= samples.length > 0;
    for (const held of samples) this.#put(held, true);
    if (samples.length > 0) this.#tail = createQueue();
  }
}

/** A sample that is written only if one follows that needs it. */
interface HeldSample {
  format: TrackFormat;
  sample: Sample;
}

const maxHeldBytes = 32 << 20;

function createQueue() {
  const samples: HeldSample[] = [];
  let bytes = 0;
  return {
    samples,
    /** Adds a copy; returns false if it is the last one that fits. */
    add({ format, sample }: HeldSample): boolean {
      bytes += sample.data.length;
      samples.push({ format, sample: { ...sample, data: Uint8Array.from(sample.data) } });
      return bytes < maxHeldBytes;
    },
  };
}
