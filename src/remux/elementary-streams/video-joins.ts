import { asReset, createJoin, joinOf, withGaps } from "../mp4/joins.ts";
import type { Sample, TrackFormat } from "../samples.ts";
import type { TrackOutput } from "../track-output.ts";
import type { TimedAccessUnit } from "./access-units.ts";
import { type PesTime, unwrap } from "./timestamps.ts";

/**
 * Writes the samples of video whose parts do not continue each other, so that a decoder can go on with each of them: where one begins
 * within an open group of pictures, those before its first picture are not shown, as they need others before it, and the numbers of
 * the others are changed. Of H.264 they stay in the file, as later pictures count those that they may refer to (ISO/IEC 14496-10 §8.2.4).
 */
export function createVideoJoins(output: TrackOutput) {
  let format: TrackFormat | undefined;
  /** Time of the unit before, if it is the last one of its part. */
  let ending: PesTime | null = null;
  let isJoin = false;
  let isReset = false;
  let resets = 0;
  let change = (sample: Uint8Array): Uint8Array => sample;
  /** Pictures before it need others that are not there. */
  let shownFrom = -Infinity;

  /** Begins a part with a key frame. */
  function join(sample: Sample, { sampleEntry, ...others }: TrackFormat): void {
    const { data, dts, pts } = sample;
    const kind = joinOf(data, sampleEntry);
    change = createJoin(kind ?? "start", sampleEntry);
    isReset = kind === "reset";
    if (isReset) {
      output.setFormat({ ...others, sampleEntry: withGaps(sampleEntry) });
      const reset = asReset(data, sampleEntry, resets++ % 2);
      output.write({ ...sample, data: reset, dts: dts - 1, pts: pts - 1, duration: 0, isHidden: true, isJump: true });
      shownFrom = pts;
    } else if (Buffer.compare(createJoin("start", sampleEntry)(data), data) !== 0) shownFrom = pts;
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
      if (sample.isSync) {
        shownFrom = -Infinity;
        if (isJoin && format !== undefined) join(sample, format);
        isJoin = false;
      }
      const isShown = sample.pts >= shownFrom;
      const data = change(sample.data);
      if (isShown) output.write({ ...sample, data });
      else if (isReset) output.write({ ...sample, data, isHidden: true });
    },
  };
}

/** Whether times go on although another part begins: nothing is missing between them, so that pictures may refer to those before. */
function isNext(before: PesTime, time: PesTime | null, step: number): boolean {
  return time !== null && Math.abs(unwrap(time.dts, before.dts) - before.dts - step) <= step / 2;
}
