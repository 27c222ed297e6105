import { shorten } from "../../net/http-url.ts";
import { tryParseUrl } from "../../parsers/url.ts";
import {
  addressingOf,
  parseMediaRange,
  type SegmentAddressing,
  compileTemplate,
  type SegmentNumbers,
} from "./addressing.ts";
import type { PeriodTimes } from "./periods.ts";
import { timeSegments } from "./timeline.ts";
import type { Chain, DashRepresentation } from "./representations.ts";
import { invalidManifestError } from "../manifest.ts";
import { resolveSegmentUrl } from "../segment-url.ts";
import {
  createSegmentCollector,
  type ComputedEnd,
  type InitSection,
  type Segment,
  type TimeSpan,
} from "../segments.ts";

/**
 * Returns the segments of a format in order; `timeline` is the index of the Period. Segments of one Representation
 * share one `init`. A Representation that is one file (SegmentBase) is one segment without `init`.
 *
 * @throws ServiceError `upstream_invalid`, `address_blocked`
 */
export function segmentsOf(
  representations: readonly DashRepresentation[],
  periods: readonly PeriodTimes[],
  url: URL,
): Segment[] {
  const { segments, add } = createSegmentCollector(url);
  const spans = spansOf(periods);
  for (const representation of representations) {
    const { period } = representation;
    const times = periods[period] ?? { startS: null, durationS: null };
    for (const segment of segmentsInPeriod(representation, times, url)) {
      const span = spans[period];
      add({ ...(span && { span }), ...segment, sequence: segments.length, timeline: period });
    }
  }
  return segments;
}

/**
 * Returns when each Period's media may be presented. The first Period is not cut at its start, the last one
 * not at its end: nothing else is presented there, and listed durations are often a little too short.
 */
function spansOf(periods: readonly PeriodTimes[]): (TimeSpan | undefined)[] {
  if (periods.length === 1) return [];
  return periods.map(({ startS, durationS }, index) => {
    if (startS === null) return undefined;
    const next = periods[index + 1];
    const ownEndS = durationS === null ? Infinity : startS + durationS;
    const endS = Math.min(ownEndS, next?.startS ?? Infinity);
    return {
      startS: index === 0 ? Number.NEGATIVE_INFINITY : startS,
      endS: next === undefined ? Infinity : endS,
    };
  });
}

type PeriodSegment = Omit<Segment, "sequence" | "timeline">;

function* segmentsInPeriod(representation: DashRepresentation, times: PeriodTimes, url: URL): Generator<PeriodSegment> {
  const { chain, id } = representation;
  const base = baseOf(chain, url);
  const addressing = addressingOf(chain, url);
  const common = { key: null, offsetS: offsetOf(addressing, times) };
  const { durationS } = times;
  if (addressing === null || addressing.name === "SegmentBase") {
    if (base.href === url.href) {
      const name = JSON.stringify(shorten(id ?? "", 100));
      throw invalidManifestError(url, `Representation ${name} must have a BaseURL`);
    }
    const found = initOf(addressing, base, url);
    const init = found?.url === base.href ? null : found;
    yield { ...common, url: base.href, range: null, init, durationS: durationS ?? 0 };
  } else if (addressing.name === "SegmentList") {
    const init = initOf(addressing, base, url);
    for (const { media, ...listed } of listedSegments(addressing, durationS, url)) {
      const { href } = media === "" ? base : resolveSegmentUrl(media, base, url);
      yield { ...common, ...listed, url: href, init };
    }
  } else yield* templateSegments(representation, addressing, times, base, url);
}

function* templateSegments(
  { id, kind, mime_type, attribute }: DashRepresentation,
  addressing: SegmentAddressing,
  times: PeriodTimes,
  base: URL,
  url: URL,
): Generator<PeriodSegment> {
  const common = { key: null, offsetS: offsetOf(addressing, times) };
  const { media, initializationMedia, startNumber, presentationTimeOffset: time } = addressing;
  if (media === undefined) throw invalidManifestError(url, "a SegmentTemplate must have media");
  const values = { id: id ?? "", bandwidth: attribute("bandwidth") ?? "" };
  const compile = (template: string) => {
    const reference = compileTemplate(template, values, url);
    return (numbers: SegmentNumbers) => resolveSegmentUrl(reference(numbers), base, url).href;
  };
  const mediaUrl = compile(media);
  const first = { number: startNumber, time };
  const init =
    initializationMedia === undefined
      ? initOf(addressing, base, url)
      : { url: compile(initializationMedia)(first), range: null, key: null };
  const computed = computedEnd(addressing, times);
  let last: SegmentNumbers | null = null;
  for (const timed of timeSegments(addressing, times.durationS, url)) {
    const { durationS, isComputed } = timed;
    const end = isComputed === true && computed !== null && { computed };
    yield { ...common, url: mediaUrl(timed), range: null, init, durationS, ...end };
    if (timed.isComputed === true) last = timed;
  }
  if (computed === null || last === null || kind !== "audio" || mime_type?.endsWith("/webm")) return;
  // Audio frames do not end at the listed boundaries of segments: the last ones may be in one more segment.
  const after = { number: last.number + 1, time: last.time + BigInt(addressing.duration ?? 0) };
  const span = { startS: times.startS ?? 0, endS: computed.periodEndS };
  const optional = { durationS: 0, isOptional: true, span };
  yield { ...common, url: mediaUrl(after), range: null, init, ...optional };
}

function computedEnd(
  { duration, timescale }: SegmentAddressing,
  { startS, durationS }: PeriodTimes,
): ComputedEnd | null {
  if (startS === null || durationS === null) return null;
  return { periodEndS: startS + durationS, segmentS: (duration ?? 0) / timescale };
}

/** One segment per SegmentURL; the last one ends with its Period. */
function* listedSegments(
  addressing: SegmentAddressing,
  periodS: number | null,
  url: URL,
): Generator<Pick<Segment, "range" | "durationS"> & { media: string }> {
  const { urls, duration, timeline, timescale } = addressing;
  const timed = timeline === null ? null : timeSegments(addressing, periodS, url);
  const segmentS = (duration ?? 0) / timescale;
  for (const [index, { media, mediaRange }] of urls.entries()) {
    const leftS = periodS === null ? segmentS : Math.max(0, periodS - index * segmentS);
    const next = timed?.next();
    const timedS = next?.done === false ? next.value.durationS : 0;
    const durationS = timed === null ? Math.min(segmentS, leftS) : timedS;
    yield { media, range: parseMediaRange(mediaRange, url), durationS };
  }
}

/** Reads the Initialization element; without a sourceURL it is in the resource at `base`. */
function initOf(addressing: SegmentAddressing | null, base: URL, url: URL): InitSection | null {
  if (addressing === null || addressing.initialization === null) return null;
  const { sourceURL, range } = addressing.initialization;
  const { href } = sourceURL === "" ? base : resolveSegmentUrl(sourceURL, base, url);
  return { url: href, range: parseMediaRange(range, url), key: null };
}

/** Resolves BaseURLs as `representationsOf` does, but throws if one is not http(s). */
function baseOf(chain: Chain, url: URL): URL {
  return chain.reduceRight(
    (base, { baseUrl }) =>
      baseUrl === "" ? base : (tryParseUrl(baseUrl, base) ?? resolveSegmentUrl(baseUrl.trim(), base, url)),
    url,
  );
}

function offsetOf(addressing: SegmentAddressing | null, { startS }: PeriodTimes): number | null {
  if (startS === null) return null;
  if (addressing === null) return startS;
  return startS - Number(addressing.presentationTimeOffset) / addressing.timescale;
}
