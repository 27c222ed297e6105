import type { MediaRange } from "../../../remux/samples.ts";
import type { Segment } from "../../../manifests/segments.ts";
import type { Plan, Source } from "./plan.ts";

/** Durations in lists are rounded. */
const slackS = 0.1;

/**
 * Selects the segments that ranges need: those in which they are by the durations in the list, the first one, which shows
 * where the media start, and the two at each discontinuity before. Separate audio gets the times of the segments of the video.
 */
export function selectRanges(plan: Plan, ranges: readonly MediaRange[]): Plan {
  if (ranges.length === 0) return plan;
  const wanted = ranges.map(({ startS, endS }) => ({ startS: startS - slackS, endS: endS + slackS }));
  const [main, ...audio] = plan.sources;
  const { source, fetched } = select(main, wanted);
  return { ...plan, sources: [source, ...audio.map((other) => select(other, fetched).source)] };
}

/** Returns the same plan with all that its sources have. */
export function selectAll(plan: Plan): Plan {
  const all = (source: Source): Source =>
    source.kind === "file" ? { ...source, part: null } : { ...source, part: null, selection: null };
  const [main, ...audio] = plan.sources;
  return { ...plan, sources: [all(main), ...audio.map(all)] };
}

/** Whether some media of a source are not fetched. */
export function hasSelection(plan: Plan): boolean {
  return plan.sources.some(
    (source) => source.part !== null || (source.kind === "segments" && source.selection !== null),
  );
}

/** Whether the end of a source is fetched. */
export function hasEnd(source: Source): boolean {
  if (source.kind === "file" || source.part !== null) return source.part?.isWhole !== false;
  return source.selection?.has(source.list.segments.length - 1) !== false;
}

/** Returns the source, and the times of what is fetched of it. */
function select(source: Source, ranges: readonly MediaRange[]): { source: Source; fetched: readonly MediaRange[] } {
  if (source.kind === "file" || source.liveJournalPath !== null) return { source, fetched: ranges };
  const { segments, gapsS = [] } = source.list;
  const isTimed =
    gapsS.length === 0 && segments.every(({ durationS, isOptional }) => durationS > 0 || isOptional === true);
  if (!isTimed) return { source, fetched: ranges };
  const selection = new Set([0]);
  const fetched: MediaRange[] = [];
  let [startS, last] = [0, 0];
  for (const [index, { durationS, isOptional = false }] of segments.entries()) {
    const endS = startS + durationS;
    // An optional one may have the end of the one before.
    const isOfSelected = isOptional && index > 0 && last === index - 1 && selection.has(last);
    const isNeeded = isOfSelected || ranges.some((range) => range.startS < endS && range.endS > startS);
    if (isNeeded) {
      selection.add(index);
      last = index;
      // Others may be longer.
      fetched.push({ startS, endS: index === segments.length - 1 ? Infinity : endS });
    }
    startS = endS;
  }
  for (const index of timelineStarts(segments, last)) selection.add(index - 1).add(index);
  if (selection.size === segments.length) return { source, fetched };
  return { source: { ...source, selection }, fetched };
}

/** Returns the first segment of each timeline that starts where the one before ends, which is known only once that has been read. */
function timelineStarts(segments: readonly Segment[], last: number): Iterable<number> {
  return segments.keys().filter((index) => {
    const { timeline, offsetS } = segments[index]!;
    return index > 0 && index <= last && offsetS === null && timeline !== segments[index - 1]!.timeline;
  });
}
