import { ServiceError } from "../../model/errors.ts";
import { shorten, urlForMessage } from "../../net/http-url.ts";
import { tryParseUrl } from "../../parsers/url.ts";
import {
  addressingOf,
  compileTemplate,
  parseMediaRange,
  parseUnsignedLong,
  type SegmentAddressing,
  type SegmentNumbers,
  timeSegments,
} from "./addressing.ts";
import { endOfList, type PeriodTimes, roundedS, spansOf, type Availability } from "./periods.ts";
import type { Chain, DashRepresentation } from "./representations.ts";
import { invalidManifestError } from "../manifest.ts";
import {
  checkSegmentCount,
  createSegmentCollector,
  type InitSection,
  type Segment,
  type SegmentList,
  type TimeSpan,
  resolveSegmentUrl,
} from "../segments.ts";

/**
 * Returns the segments of a format in order; `timeline` is the index of the Period. Those that begin after the last Period has
 * ended are left out, and counted. Segments of one Representation share one `init`. A Representation that is one file (SegmentBase) is one segment without `init`.
 *
 * With `availability` only the available ones are listed, which have a `dateMs`, and `timeline` is the start of the
 * Period, milliseconds: it stays when the MPD forgets earlier Periods.
 *
 * @throws ServiceError `upstream_invalid`, `address_blocked`; `live_stream` for a live MPD without SegmentTemplate
 */
export function segmentsOf(
  representations: readonly DashRepresentation[],
  periods: readonly PeriodTimes[],
  url: URL,
  availability: Availability | null,
): Pick<SegmentList, "segments" | "beyondEnd"> {
  const { segments, add } = createSegmentCollector(url);
  const spans = spansOf(periods);
  let beyondEnd = 0;
  let listed = 0;
  for (const representation of representations) {
    const { period } = representation;
    const times = periods[period] ?? { startS: null, durationS: null };
    const timeline = availability === null ? period : Math.round(1000 * (times.startS ?? 0));
    const span = spans[period];
    let endS: number | undefined;
    for (const { startS, ...segment } of segmentsInPeriod(representation, times, url, availability)) {
      checkSegmentCount((listed += 1), url);
      const durationS = presentedS(startS, segment.durationS, span);
      // A timeline may list what is before and after its Period.
      if (durationS <= 0 && segment.durationS > 0) continue;
      const isLast = period === periods.length - 1;
      if (isLast) endS ??= endOfList(times, startS);
      const { isOptional = false } = segment;
      if (!isOptional && endS !== undefined && startS !== null && startS >= endS) {
        beyondEnd += 1;
        continue;
      }
      const slack = isLast && isOptional && { endSlackS: roundedS.tenths };
      add({ ...(span && { span }), ...segment, ...slack, durationS, sequence: segments.length, timeline });
    }
  }
  return { segments, ...(beyondEnd > 0 && { beyondEnd }) };
}

/** Returns how much of a segment is within the span, seconds; 0 of one that begins after its end. */
function presentedS(startS: number | null, durationS: number, span: TimeSpan | undefined): number {
  if (span === undefined || startS === null) return durationS;
  return Math.max(0, Math.min(durationS, startS + durationS - span.startS, span.endS - startS));
}

/** `startS`: on the timeline of the presentation; `null`: unknown. */
type PeriodSegment = Omit<Segment, "sequence" | "timeline"> & { startS: number | null };

function* segmentsInPeriod(
  representation: DashRepresentation,
  times: PeriodTimes,
  url: URL,
  availability: Availability | null,
): Generator<PeriodSegment> {
  const { chain, id } = representation;
  const base = baseOf(chain, url);
  const addressing = addressingOf(chain, url);
  const common = { key: null, offsetS: offsetOf(addressing, times) };
  const { durationS } = times;
  const live = availability?.endS === Infinity ? null : availability;
  if (live !== null) {
    if (addressing?.name !== "SegmentTemplate") {
      throw new ServiceError("live_stream", `live DASH is recorded with SegmentTemplate only: ${urlForMessage(url)}`);
    }
    yield* liveSegments(representation, addressing, times, { base, url, availability: live });
  } else if (addressing === null || addressing.name === "SegmentBase") {
    if (base.href === url.href) {
      const name = JSON.stringify(shorten(id ?? "", 100));
      throw invalidManifestError(url, `Representation ${name} must have a BaseURL`);
    }
    const found = initOf(addressing, base, url);
    const init = found?.url === base.href ? null : found;
    yield { ...common, startS: null, url: base.href, range: null, init, durationS: durationS ?? 0 };
  } else if (addressing.name === "SegmentList") {
    const init = initOf(addressing, base, url);
    for (const { media, atS, ...listed } of listedSegments(addressing, durationS, url)) {
      const { href } = media === "" ? base : resolveSegmentUrl(media, base, url);
      const startS = times.startS === null || atS === null ? null : times.startS + atS;
      yield { ...common, ...listed, startS, url: href, init };
    }
  } else {
    for (const segment of templateSegments(representation, addressing, times, { base, url, fromS: 0 })) {
      const { startS } = segment;
      const isDated = availability !== null && startS !== null;
      yield isDated ? dated(segment, startS, availability) : segment;
    }
  }
}

/** Ends of segments differ from the clock by this at most because of rounding, seconds. */
const roundingS = 1e-3;

/** Yields the segments of a Period that are available. Their number, or their time, is listed or counted by the clock. */
function* liveSegments(
  representation: DashRepresentation,
  addressing: SegmentAddressing,
  times: PeriodTimes,
  { base, url, availability }: { base: URL; url: URL; availability: Availability },
): Generator<PeriodSegment> {
  const { startS: periodS } = times;
  if (periodS === null) throw invalidManifestError(url, "the Periods of a live MPD must have a start");
  const availableS = availability.endS - periodS;
  if (availableS <= 0) return;
  const isOpen = times.durationS === null || times.durationS > availableS;
  const end = addressing.timeline?.at(-1);
  const isListed = addressing.timeline !== null && !end?.r.trim().startsWith("-");
  // If segments have a constant duration, one that is not whole is not there yet.
  const segmentS = addressing.timeline === null && addressing.duration ? addressing.duration / addressing.timescale : 0;
  const openS = segmentS > 0 ? Math.floor((availableS + roundingS) / segmentS) * segmentS : availableS;
  if (isOpen && openS === 0) return;
  // One that a timeline repeats until now is not shorter because it is the last one: it continues.
  const repeatedS = isListed ? 0 : Number(parseUnsignedLong("S@d", end?.d, url) ?? 0n) / addressing.timescale;
  const known = { startS: periodS, durationS: isOpen ? openS + repeatedS : times.durationS };
  const place = { base, url, fromS: Math.max(0, availability.startS - periodS - segmentS) };
  for (const { startS, computed: _, ...segment } of templateSegments(representation, addressing, known, place)) {
    const atS = startS ?? periodS;
    if (segment.isOptional) continue;
    const keptS = availability.isReload === true ? segment.durationS : 0;
    if (!isListed && atS + segment.durationS + keptS <= availability.startS + roundingS) continue;
    if (isOpen && !isListed && atS + segment.durationS > availability.endS + roundingS) return;
    yield dated({ ...segment, startS: null }, atS, availability);
  }
}

const minLateS = 3;

function dated(segment: PeriodSegment, startS: number, { originMs }: Availability): PeriodSegment {
  return { ...segment, originMs, dateMs: originMs + 1000 * startS, lateS: Math.max(minLateS, 2 * segment.durationS) };
}

function* templateSegments(
  { id, kind, mime_type, attribute }: DashRepresentation,
  addressing: SegmentAddressing,
  times: PeriodTimes,
  { base, url, fromS }: { base: URL; url: URL; fromS: number },
): Generator<PeriodSegment> {
  const offsetS = offsetOf(addressing, times);
  const common = { key: null, offsetS };
  const startOf = (ticks: bigint) => (offsetS === null ? null : offsetS + Number(ticks) / addressing.timescale);
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
  const periodEndS = times.startS === null || times.durationS === null ? null : times.startS + times.durationS;
  let after: SegmentNumbers | null = null;
  for (const timed of timeSegments(addressing, times.durationS, url, fromS)) {
    const { number, time: startTicks, durationS, computed: ticks } = timed;
    const isComputed = ticks !== undefined && periodEndS !== null;
    const end = isComputed && { computed: { periodEndS, segmentS: Number(ticks) / addressing.timescale } };
    yield { ...common, startS: startOf(startTicks), url: mediaUrl(timed), range: null, init, durationS, ...end };
    const isNextListed = addressing.timeline === null && addressing.endNumber !== null && number < addressing.endNumber;
    const lastsTicks = ticks ?? (isNextListed ? BigInt(addressing.duration ?? 0) : undefined);
    after = lastsTicks === undefined ? null : { number: number + 1, time: startTicks + lastsTicks };
  }
  if (periodEndS === null || after === null || kind !== "audio" || mime_type?.endsWith("/webm")) return;
  // Audio frames do not end at the listed boundaries of segments: the last ones may be in one more segment.
  const span = { startS: times.startS ?? 0, endS: periodEndS };
  const optional = { durationS: 0, isOptional: true, span };
  yield { ...common, startS: startOf(after.time), url: mediaUrl(after), range: null, init, ...optional };
}

/** One segment per SegmentURL; the last one ends with its Period. `atS`: start in the Period; `null`: it is not exact. */
function* listedSegments(
  addressing: SegmentAddressing,
  periodS: number | null,
  url: URL,
): Generator<Pick<Segment, "range" | "durationS"> & { media: string; atS: number | null }> {
  const { urls, duration, timeline, timescale, presentationTimeOffset } = addressing;
  const timed = timeline === null ? null : timeSegments(addressing, periodS, url);
  const segmentS = (duration ?? 0) / timescale;
  for (const [index, { media, mediaRange }] of urls.entries()) {
    const leftS = periodS === null ? segmentS : Math.max(0, periodS - index * segmentS);
    const next = timed?.next();
    const { durationS: timedS, time } = next?.done === false ? next.value : { durationS: 0, time: null };
    const durationS = timed === null ? Math.min(segmentS, leftS) : timedS;
    const atS = time === null ? null : Number(time - presentationTimeOffset) / timescale;
    yield { media, range: parseMediaRange(mediaRange, url), durationS, atS };
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
