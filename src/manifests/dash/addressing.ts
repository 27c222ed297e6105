import type { ByteRange } from "../../net/byte-range.ts";
import type { Chain } from "./representations.ts";
import type { Addressing, Initialization, SegmentUrl, TimelineEntry } from "./xml.ts";
import { invalidManifestError } from "../manifest.ts";
import { checkSegmentCount } from "../segments.ts";

/** How the segments of one Representation are addressed, after inheritance. */
export interface SegmentAddressing {
  name: Addressing["name"];
  initialization: Initialization | null;
  timeline: readonly TimelineEntry[] | null;
  urls: readonly SegmentUrl[];
  /** URL templates; `undefined`: none. */
  media: string | undefined;
  initializationMedia: string | undefined;
  /** Ticks per second. */
  timescale: number;
  /** Ticks of one segment; `null`: a SegmentTimeline has it. */
  duration: number | null;
  startNumber: number;
  endNumber: number | null;
  /** Ticks. */
  presentationTimeOffset: bigint;
}

/**
 * Returns the innermost SegmentTemplate, SegmentList or SegmentBase, completed from outer elements of the
 * same kind (ISO/IEC 23009-1 §5.3.9.1); `null` if there is none.
 *
 * @throws ServiceError `upstream_invalid` for an invalid number.
 */
export function addressingOf(chain: Chain, url: URL): SegmentAddressing | null {
  const found = chain.flatMap(({ addressing }) => addressing ?? []);
  const [nearest] = found;
  if (nearest === undefined) return null;
  const { name } = nearest;
  const sameKind = found.filter((each) => each.name === name);
  const attribute = (key: string) => sameKind.find(({ attributes }) => attributes.has(key))?.attributes.get(key);
  const integer = (key: string) => parseUnsignedLong(key, attribute(key), url);
  const endNumber = integer("endNumber");
  return {
    name,
    initialization: sameKind.find((each) => each.initialization !== null)?.initialization ?? null,
    timeline: sameKind.find((each) => each.timeline !== null)?.timeline ?? null,
    urls: sameKind.find((each) => each.urls.length > 0)?.urls ?? [],
    media: attribute("media"),
    initializationMedia: attribute("initialization"),
    timescale: Number(integer("timescale") ?? 1) || 1,
    duration: Number(integer("duration") ?? 0) || null,
    startNumber: Number(integer("startNumber") ?? 1),
    endNumber: endNumber === null ? null : Number(endNumber),
    presentationTimeOffset: integer("presentationTimeOffset") ?? 0n,
  };
}

/**
 * Parses an `xs:unsignedLong`; `null` if `value` is blank. A `bigint`, because times in a fine timescale
 * exceed 2^53. `name` is the attribute's, for the error.
 *
 * @throws ServiceError `upstream_invalid`
 */
export function parseUnsignedLong(name: string, value: string | undefined, url: URL): bigint | null {
  const text = value?.trim() ?? "";
  if (text === "") return null;
  if (/^\d{1,20}$/.test(text)) return BigInt(text);
  throw invalidManifestError(url, `${name} must be a whole number of at most 20 digits`, text);
}

/**
 * Parses a `mediaRange` or `range` attribute: `first-last`, both inclusive (RFC 9110 §14.1.2). Returns
 * `null`, the whole resource, if it is blank.
 *
 * @throws ServiceError `upstream_invalid`
 */
export function parseMediaRange(value: string, url: URL): ByteRange | null {
  if (value.trim() === "") return null;
  const [, first, last] = /^\s*(\d{1,15})\s*-\s*(\d{1,15})\s*$/.exec(value) ?? [];
  const length = Number(last) - Number(first) + 1;
  if (first !== undefined && length > 0) return { offset: Number(first), length };
  throw invalidManifestError(url, "a byte range must be first-last", value);
}

/** The variables of a segment's URL. */
export interface SegmentNumbers {
  /** In its Period, counting from `startNumber`. */
  number: number;
  /** On the media's own timeline, in ticks. */
  time: bigint;
}

/**
 * Compiles a SegmentTemplate's `media` or `initialization` (ISO/IEC 23009-1 §5.3.9.4.4) for one
 * Representation into a function that returns a URL reference.
 *
 * @throws ServiceError `upstream_invalid` for an unknown identifier or an unpaired `$`.
 */
export function compileTemplate(
  template: string,
  representation: { id: string; bandwidth: string },
  url: URL,
): (numbers: SegmentNumbers) => string {
  const parts = template.split("$");
  const values = parts.map((part, index) => {
    if (index % 2 === 0) return () => part;
    if (index < parts.length - 1) {
      if (part === "") return () => "$";
      if (part === "RepresentationID") return () => representation.id;
      const [, name, width] = /^(Number|Time|Bandwidth)(?:%0?(\d{0,2})d)?$/.exec(part) ?? [];
      const pad = (value: string) => value.padStart(Number(width ?? 0), "0");
      if (name === "Number") return ({ number }: SegmentNumbers) => pad(`${number}`);
      if (name === "Time") return ({ time }: SegmentNumbers) => pad(`${time}`);
      if (name === "Bandwidth") return () => pad(representation.bandwidth);
    }
    const rule = "a template may only name $RepresentationID$, $Number$, $Time$, $Bandwidth$ and $$";
    throw invalidManifestError(url, rule, template);
  });
  return (numbers) => values.map((value) => value(numbers)).join("");
}

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
