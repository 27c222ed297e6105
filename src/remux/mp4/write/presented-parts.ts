import type { Edit, TrackFormat } from "../../samples.ts";
import type { PresentedSpan, TimesIndex } from "./times.ts";

/** A part of a track's media and when it is presented, in ticks of the track. */
export interface PresentedPart {
  /** On the presentation timeline. */
  startTicks: number;
  endTicks: number;
  /** Media time (ISO/IEC 14496-12 §8.6.6) of its start. */
  mediaTicks: number;
  /** It ends before the media do. */
  isCut: boolean;
}

/**
 * Returns what of a track is presented, in order: everything but hidden samples, or else what `edits` say, or
 * else everything but the priming and the padding of audio. At least one part, which is empty if nothing is presented.
 *
 * @param videoStartS Presentation time at which video starts; Infinity: there is none.
 */
export function presentedParts(
  times: TimesIndex,
  format: TrackFormat,
  edits: readonly Edit[] | undefined,
  videoStartS: number,
): PresentedPart[] {
  if (times.spans !== null) return partsOfSpans(times.spans, times.zeroTicks);
  if (edits !== undefined) {
    const parts = partsOf(times, edits);
    if (parts.length > 0) return parts;
  }
  const { startTicks, endTicks, zeroTicks } = times;
  const start = isPriming(times, format) && videoStartS >= -maxRoundingS ? 0 : startTicks;
  const { paddingTicks = 0 } = format;
  const end = Math.max(start, endTicks - paddingTicks);
  return [{ startTicks: start, endTicks: end, mediaTicks: start + zeroTicks, isCut: end < endTicks }];
}

/** More than any encoder needs; Opus has 80 ms at most. */
const maxPrimingS = 0.2;
/** Of the times in manifests. */
const maxRoundingS = 0.001;

/** Audio that begins shortly before time 0 without saying why has priming: the track starts at 0 then. */
function isPriming({ startTicks, endTicks, hasPriming }: TimesIndex, { kind, timescale }: TrackFormat): boolean {
  if (kind !== "audio" || hasPriming) return false;
  return startTicks < 0 && startTicks >= -maxPrimingS * timescale && endTicks > 0;
}

/** Leaves out what an edit has before the first sample and after the last. */
function partsOf(times: TimesIndex, edits: readonly Edit[]): PresentedPart[] {
  const { startTicks, endTicks, firstTicks, zeroTicks } = times;
  const parts: PresentedPart[] = [];
  let at: number | undefined;
  for (const { mediaTicks, durationTicks, emptyTicks } of edits) {
    const from = firstTicks + mediaTicks;
    // Samples have the presentation times of the first edit.
    const start = at === undefined ? from : at + emptyTicks;
    at = start + durationTicks;
    const first = Math.max(from, startTicks);
    const end = Math.min(from + durationTicks, endTicks);
    if (end <= first) continue;
    parts.push({
      startTicks: start + first - from,
      endTicks: start + end - from,
      mediaTicks: first + zeroTicks,
      isCut: end < endTicks,
    });
  }
  return parts;
}

/**
 * Lets each span end where the next one begins, as far as its media last: the end of the last frame before a cut is not exact, and
 * readers take an edit without media between others for the start of the track.
 */
function partsOfSpans(spans: readonly PresentedSpan[], zeroTicks: number): PresentedPart[] {
  return spans.map(({ startTicks, endTicks, shiftTicks, tailTicks }, index) => {
    const next = spans[index + 1];
    const heldTicks = next === undefined ? endTicks : Math.min(tailTicks, next.mediaTicks - shiftTicks);
    const latestTicks = Math.max(endTicks, heldTicks);
    return {
      startTicks,
      endTicks: Math.min(latestTicks, next?.startTicks ?? Infinity),
      mediaTicks: startTicks + shiftTicks + zeroTicks,
      isCut: next !== undefined,
    };
  });
}
