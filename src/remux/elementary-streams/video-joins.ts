import { asReset, createJoin, joinOf, withGaps } from "../mp4/joins.ts";
import type { Sample, TrackFormat } from "../samples.ts";
import type { TrackOutput } from "../track-output.ts";
import type { TimedAccessUnit } from "./access-units.ts";
import { type PesTime, unwrap } from "./timestamps.ts";

/**
 * Writes the samples of video whose parts do not continue each other, so that a decoder can go on with each of them: where one begins
 * within an open group of pictures, those are left out that are shown before its first picture, as they need others before it, and
 * the numbers of the others are changed.
 */
export function createVideoJoins(output: TrackOutput) {
  let format: TrackFormat | undefined;
  /** Time of the unit before, if it is the last one of its part. */
  let ending: PesTime | null = null;
  let isJoin = false;
  let resets = 0;
  let change = (sample: Uint8Array): Uint8Array => sample;
  /** Pictures that are shown earlier need others that are not there. */
  let shownFrom = -Infinity;

  /** Begins a part with a key frame; returns whether decoders must start with the copy of it that is before it. */
  function join(sample: Sample, { sampleEntry, ...others }: TrackFormat): boolean {
    const { data, dts, pts } = sample;
    const kind = joinOf(data, sampleEntry);
    change = createJoin(kind ?? "start", sampleEntry);
    if (kind === "reset") {
      output.setFormat({ ...others, sampleEntry: withGaps(sampleEntry) });
      const reset = asReset(data, sampleEntry, resets++ % 2);
      output.write({ ...sample, data: reset, dts: dts - 1, pts: pts - 1, duration: 0, isHidden: true, isJump: true });
      shownFrom = pts;
    } else if (Buffer.compare(createJoin("start", sampleEntry)(data), data) !== 0) shownFrom = pts;
    return kind === "reset";
  }

  return {
    setFormat(next: TrackFormat): void {
      format = next;
      output.setFormat(next);
    },
    /** To be called before the unit is written. @param step How long pictures last, ticks. */
    note({ time, isLast }: TimedAccessUnit, step: number): void {
      isJoin ||= ending !== null && !isNext(ending, time, step);
      ending = isLast ? time : null;
    },
    write(sample: Sample): void {
      let { isSync } = sample;
      if (isSync) {
        shownFrom = -Infinity;
        if (isJoin && format !== undefined) isSync = !join(sample, format);
        isJoin = false;
      }
      // Also of those left out, as they count.
      const data = change(sample.data);
      if (sample.pts >= shownFrom) output.write({ ...sample, data, isSync });
    },
  };
}

/** Whether times go on although another part begins: nothing is missing between them, so that pictures may refer to those before. */
function isNext(before: PesTime, time: PesTime | null, step: number): boolean {
  return time !== null && Math.abs(unwrap(time.dts, before.dts) - before.dts - step) <= step / 2;
}
