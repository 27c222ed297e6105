import type { Sample, TrackFormat } from "../samples.ts";
import { isSameFormat, type TrackOutput } from "../track-output.ts";
import { asReset, createJoin, joinOf, keepSample, type Start, withGaps } from "./joins.ts";

/**
 * Writes the samples of video whose parts do not continue each other, so that a decoder can go on with each of them: where one begins
 * within an open group of pictures, those are left out that are shown before its first picture, as they need others before it, and
 * the numbers of the others are changed.
 */
export function createVideoJoins(output: TrackOutput) {
  let format: TrackFormat | undefined;
  /** Also media begin within an open group of pictures, as those of a live stream. */
  let isJoin = true;
  /** No sample has come since the join. */
  let isAtJoin = true;
  let isFirst = true;
  let resets = 0;
  let change = keepSample;

  /** Joins a part that begins with the sample, after a copy of it if its join is "reset"; returns whether it is. */
  function join(sample: Sample, kind: Start | null, { sampleEntry, ...others }: TrackFormat): boolean {
    const { data, dts, pts } = sample;
    change = isFirst && kind !== "reset" ? keepSample : createJoin(kind === "reset" ? kind : "start", sampleEntry);
    isFirst = false;
    if (kind !== "reset") return false;
    output.setFormat({ ...others, sampleEntry: withGaps(sampleEntry) });
    const reset = asReset(data, sampleEntry, resets++ % 2);
    output.write({ ...sample, data: reset, dts: dts - 1, pts: pts - 1, duration: 0, ...hidden });
    return true;
  }

  /** Begins a part if it begins with the sample; returns whether decoders must start with a copy of it. */
  function beginPart(sample: Sample): boolean {
    // Sources may not call the first sample a sync sample if others that follow it are shown before it.
    if (!isJoin || format === undefined || !(sample.isSync || isAtJoin)) return false;
    isAtJoin = false;
    const kind = joinOf(sample.data, format.sampleEntry);
    if (!sample.isSync && kind !== "reset") return false;
    isJoin = false;
    return join(sample, kind, format);
  }

  return {
    setFormat(next: TrackFormat): void {
      if (isSameFormat(next, format)) return;
      format = next;
      output.setFormat(next);
    },
    /** The next sample does not continue those before. */
    begin(): void {
      isJoin = true;
      isAtJoin = true;
    },
    write(sample: Sample): void {
      const isCopied = beginPart(sample);
      const { data, isLost } = change(sample.data);
      // A reader that looks for where decoding can start has to find the copy.
      if (!isLost) output.write({ ...sample, data, ...(isCopied && { isSync: false, isJump: false }) });
    },
  };
}

const hidden = { isSync: true, isHidden: true, isJump: true };
