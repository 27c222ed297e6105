import { parseUnsignedLong, type SegmentAddressing, type SegmentNumbers } from "./addressing.ts";
import type { TimelineEntry } from "./xml.ts";
import { invalidManifestError } from "../manifest.ts";
import { checkSegmentCount } from "../segments.ts";

interface TimedSegment extends SegmentNumbers {
  durationS: number;
  /** How long it lasts if it is whole, ticks. Only if the duration of the Period alone says that it exists, and it is one of the last. */
  computed?: bigint;
}

/** Share of the segments, at the end, that may not exist: the duration of the Period is approximate. */
const computedShare = 0.01;

/** If less than this fraction of a segment is left at the end of a Period, it counts as no segment. */
const tolerance = 1e-3;

/**
 * Yields, in order, the segments that a SegmentTimeline or a constant duration gives a Period of
 * `periodS` seconds (`null`: unknown). A constant duration begins with the one at `fromS` seconds of the Period.
 *
 * @throws ServiceError `upstream_invalid` for an entry of more than 200,000 segments, before yielding any
 * of them; for an entry without duration; if the number of segments is unknown.
 */
export function timeSegments(
  addressing: SegmentAddressing,
  periodS: number | null,
  url: URL,
  fromS = 0,
): Generator<TimedSegment> {
  const { timeline } = addressing;
  return timeline === null
    ? timeEvenly(addressing, periodS, url, fromS)
    : timeEntries(timeline, addressing, periodS, url);
}

function* timeEvenly(
  addressing: SegmentAddressing,
  periodS: number | null,
  url: URL,
  fromS: number,
): Generator<TimedSegment> {
  const { duration, timescale, startNumber, endNumber, presentationTimeOffset } = addressing;
  if (duration === null) throw invalidManifestError(url, "its segments must have a duration or a SegmentTimeline");
  const segmentS = duration / timescale;
  const fitting = periodS === null ? Infinity : countFitting(periodS, segmentS);
  const numbered = endNumber === null ? Infinity : endNumber - startNumber + 1;
  const count = Math.min(fitting, numbered);
  if (count === Infinity) {
    throw invalidManifestError(url, "its segments need a Period of known duration or an endNumber");
  }
  const first = Math.floor(fromS / segmentS);
  checkSegmentCount(count - first, url);
  const firstComputed = firstComputedOf(count);
  for (let index = first; index < count; index += 1) {
    const leftS = periodS === null ? segmentS : periodS - index * segmentS;
    yield {
      number: startNumber + index,
      time: presentationTimeOffset + BigInt(index) * BigInt(duration),
      durationS: Math.min(segmentS, leftS),
      ...(numbered === Infinity && index >= firstComputed && { computed: BigInt(duration) }),
    };
  }
}

function* timeEntries(
  timeline: readonly TimelineEntry[],
  addressing: SegmentAddressing,
  periodS: number | null,
  url: URL,
): Generator<TimedSegment> {
  const { timescale, startNumber, endNumber, presentationTimeOffset } = addressing;
  const periodEnd = periodS === null ? null : presentationTimeOffset + BigInt(Math.round(periodS * timescale));
  let number = startNumber;
  let time = 0n;
  for (const [index, entry] of timeline.entries()) {
    time = parseUnsignedLong("S@t", entry.t, url) ?? time;
    number = Number(parseUnsignedLong("S@n", entry.n, url) ?? number);
    const duration = parseUnsignedLong("S@d", entry.d, url) ?? 0n;
    if (duration === 0n) throw invalidManifestError(url, "S@d must be a whole number above 0");
    const next = parseUnsignedLong("S@t", timeline[index + 1]?.t, url);
    const end = next ?? periodEnd;
    const count = countOf(entry, end === null ? null : end - time, duration, url);
    checkSegmentCount(count, url);
    const isComputed = isRepeatedToEnd(entry) && next === null && endNumber === null;
    const firstComputed = isComputed ? firstComputedOf(count) : count;
    for (let nth = 0; nth < count; nth += 1) {
      if (endNumber !== null && number > endNumber) return;
      // If an S repeats to an end, the last segment may be shorter.
      const lasts = isRepeatedToEnd(entry) && end !== null && end - time < duration ? end - time : duration;
      const durationS = Number(lasts > 0n ? lasts : duration) / timescale;
      yield { number, time, durationS, ...(nth >= firstComputed && { computed: duration }) };
      number += 1;
      time += duration;
    }
  }
}

/** Returns the index of the first segment that may not exist of so many that end with the Period. */
const firstComputedOf = (count: number): number => Math.min(count - 1, Math.floor(count * (1 - computedShare)));

const isRepeatedToEnd = ({ r }: Pick<TimelineEntry, "r">): boolean => r.trim().startsWith("-");

/** Counts the segments of an S element; a negative `r` repeats it for all the time to the next S or the Period's end. */
function countOf({ r }: TimelineEntry, lastingTicks: bigint | null, duration: bigint, url: URL): number {
  if (!isRepeatedToEnd({ r })) return Number(parseUnsignedLong("S@r", r, url) ?? 0n) + 1;
  if (lastingTicks === null)
    throw invalidManifestError(url, "a negative S@r needs a next S@t or a Period of known duration");
  return countFitting(Number(lastingTicks), Number(duration));
}

function countFitting(total: number, segment: number): number {
  return Math.max(1, Math.ceil(total / segment - tolerance));
}
