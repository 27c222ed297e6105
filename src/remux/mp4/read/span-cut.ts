import type { Sample, SegmentTiming, TrackFormat } from "../../samples.ts";
import type { TrackOutput } from "../../track-output.ts";

/**
 * Writes what is presented within the span of its timeline. Video samples outside that others need are
 * written hidden; audio outside is left out, except the priming of the decoder.
 */
export interface SpanCut {
  /** `isPriming`: the media themselves say that the sample is not presented. */
  write(format: TrackFormat, sample: Sample, timing: SegmentTiming, isPriming: boolean): void;
}

/** More pictures than a decoder holds back to sort them. */
const maxTail = 32;
/** Longer than the priming of any encoder. */
const maxPrimingS = 0.2;

export function createSpanCut(output: TrackOutput): SpanCut {
  let timeline: number | undefined;
  /** From the latest sync sample before the span on. */
  let lead = createQueue();
  /** After the end of the span. */
  let tail = createQueue();
  let hasBegun = false;
  let hasEnded = false;
  let lastPts = -Infinity;
  /** Samples after the end have been written. */
  let hasTail = false;
  /** The hidden samples between the last and the next one take media time. */
  let isJump = false;

  function startSpan(next: number): void {
    timeline = next;
    isJump ||= hasTail;
    hasTail = false;
    lead = createQueue();
    tail = createQueue();
    hasBegun = false;
    hasEnded = false;
    lastPts = -Infinity;
  }

  function put({ format, sample }: HeldSample, isHidden: boolean): void {
    output.setFormat(format);
    output.write({ ...sample, ...(isHidden && { isHidden }), ...(isJump && { isJump }) });
    hasBegun = true;
    isJump = false;
    lastPts = sample.pts;
  }

  function putLead(): void {
    if (lead.samples.length > 0 && !hasBegun) isJump = true;
    for (const held of lead.samples) put(held, true);
    lead = createQueue();
  }

  function putTail(): void {
    const { samples } = tail;
    tail = createQueue();
    for (const held of samples) put(held, true);
    hasTail ||= samples.length > 0;
  }

  function writeBefore(held: HeldSample): void {
    if (hasBegun) return put(held, true);
    if (held.sample.isSync) lead = createQueue();
    if (!lead.add(held)) putLead();
  }

  return {
    write(format, sample, { timeline: current, span }, isPriming) {
      if (current !== timeline) startSpan(current);
      const held = { format, sample };
      if (span === undefined) {
        output.setFormat(format);
        return output.write(sample);
      }
      const { timescale } = output;
      const isVideo = format.kind === "video";
      // Most of a picture must be in the span: stated times are rounded.
      const slack = isVideo ? sample.duration / 4 : timescale / 1000;
      // A segment that is listed twice, or by two Periods.
      if (hasEnded || (!isVideo && sample.pts <= lastPts)) return;
      if (sample.pts >= span.endS * timescale - slack) {
        hasEnded = !isVideo || !tail.add(held) || tail.samples.length > maxTail;
      } else if (sample.pts >= span.startS * timescale - slack) {
        putLead();
        putTail();
        put(held, false);
      } else if (isVideo) {
        writeBefore(held);
      } else if (isPriming && sample.pts >= (span.startS - maxPrimingS) * timescale) {
        put(held, false);
      }
    },
  };
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
