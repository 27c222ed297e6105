import { ServiceError } from "../errors.ts";
import { urlForMessage, shorten } from "../net/http-url.ts";
import { tryParseUrl } from "../parsers/url.ts";
import { addressingOf, readMediaRange, type TrackAddressing } from "./dash-addressing.ts";
import { listDashFormats } from "./dash-formats.ts";
import { type PeriodTimes, timePeriods } from "./dash-periods.ts";
import { compileTemplate } from "./dash-template.ts";
import { placeSegments } from "./dash-timeline.ts";
import type { Chain, DashRepresentation } from "./dash-representations.ts";
import { type Mpd, readMpd } from "./dash-xml.ts";
import { findFormat, invalidManifestError } from "./manifest.ts";
import { resolveSegmentUrl } from "./segment-url.ts";
import { createSegmentCollector } from "./segment-collector.ts";
import type { InitSection, Segment, SegmentList, SegmentRange } from "./segments.ts";

/**
 * The segments of the format that `readDash` lists as `formatId` for this MPD, through all Periods
 * that it goes on in; `timeline` is the index of the Period. Segments of one Representation share
 * one `init`. A Representation that is one file (SegmentBase) is one segment without `init`.
 *
 * @throws ServiceError `upstream_invalid` for what is no MPD, is cut short by its bounds, or says
 * too little or nonsense about its segments; over 200,000 of them. `live_stream` for a dynamic MPD,
 * `drm_protected` for ContentProtection, `format_unavailable` where there is no such format,
 * `address_blocked` for an address that is not http(s).
 */
export function readDashSegments(text: string, url: URL, formatId: string): SegmentList {
  const mpd = readMpd(text, url);
  checkPresentation(mpd, url);
  const tracks = findTracks(mpd, url, formatId);
  if (tracks.some(({ has_drm }) => has_drm)) {
    throw refused(
      "drm_protected",
      url,
      "its keys are given by a licence server (ContentProtection)",
    );
  }
  const { segments, add } = createSegmentCollector(url);
  const periods = timePeriods(mpd.root);
  for (const track of tracks) {
    const times = periods[track.period] ?? { startS: null, durationS: null };
    for (const segment of readTrack(track, times, url)) {
      add({ ...segment, sequence: segments.length, timeline: track.period });
    }
  }
  if (segments.length === 0)
    throw invalidManifestError(url, `${quote(formatId)} must have segments`);
  return { segments, hasEnded: true, refreshS: 0 };
}

function checkPresentation({ root, isCut }: Mpd, url: URL): void {
  if (root.attributes.get("type") === "dynamic") {
    throw refused("live_stream", url, "live DASH (type dynamic) is not recorded");
  }
  if (isCut) throw invalidManifestError(url, "it has more Representations than are read");
  const isRemote = root.children.some(
    ({ attributes, children }) =>
      children.length === 0 &&
      (attributes.get("xlink:href") ?? resolvesToNothing) !== resolvesToNothing,
  );
  if (isRemote)
    throw invalidManifestError(url, "its Periods must be in it, not linked to (xlink:href)");
}

const resolvesToNothing = "urn:mpeg:dash:resolve-to-zero:2013";

function findTracks({ root }: Mpd, url: URL, formatId: string): DashRepresentation[] {
  const { listed } = listDashFormats(root, url);
  const format = findFormat(
    listed.map((entry) => entry.format),
    formatId,
  );
  const found = listed.find((entry) => entry.format === format);
  if (found !== undefined) return found.tracks;
  throw refused("format_unavailable", url, `it lists no format ${quote(formatId)}`);
}

type TrackSegment = Omit<Segment, "sequence" | "timeline">;

/** The segments of one Representation in its Period. */
function* readTrack(
  track: DashRepresentation,
  times: PeriodTimes,
  url: URL,
): Generator<TrackSegment> {
  const { chain } = track;
  const base = baseOf(chain, url);
  const addressing = addressingOf(chain, url);
  const common = { key: null, offsetS: offsetOf(addressing, times) };
  const { durationS } = times;
  if (addressing === null || addressing.name === "SegmentBase") {
    if (base.href === url.href) {
      throw invalidManifestError(
        url,
        `Representation ${quote(track.id ?? "")} must have an address`,
      );
    }
    const init = initOf(addressing, base, url);
    const apart = init?.url === base.href ? null : init;
    yield { ...common, url: base.href, range: null, init: apart, durationS: durationS ?? 0 };
  } else if (addressing.name === "SegmentList") {
    const init = initOf(addressing, base, url);
    for (const segment of listedSegments(addressing, durationS, url)) {
      const address = segment.media === "" ? base : resolveSegmentUrl(segment.media, base, url);
      const { range, durationS: ofSegmentS } = segment;
      yield { ...common, url: address.href, range, init, durationS: ofSegmentS };
    }
  } else yield* templateSegments(track, { addressing, base, durationS, common }, url);
}

interface Template {
  addressing: TrackAddressing;
  base: URL;
  durationS: number | null;
  common: Pick<TrackSegment, "key" | "offsetS">;
}

function* templateSegments(
  track: DashRepresentation,
  template: Template,
  url: URL,
): Generator<TrackSegment> {
  const { addressing, base, durationS, common } = template;
  const { media, initializationMedia, startNumber, presentationTimeOffset: time } = addressing;
  if (media === undefined) throw invalidManifestError(url, "a SegmentTemplate must have media");
  const values = { id: track.id ?? "", bandwidth: track.attribute("bandwidth") ?? "" };
  const mediaOf = compileTemplate(media, values, url);
  const init =
    initializationMedia === undefined
      ? initOf(addressing, base, url)
      : wholeInit(compileTemplate(initializationMedia, values, url)({ number: startNumber, time }));
  for (const place of placeSegments(addressing, durationS, url)) {
    const address = resolveSegmentUrl(mediaOf(place), base, url).href;
    yield { ...common, url: address, range: null, init, durationS: place.durationS };
  }

  function wholeInit(reference: string): InitSection {
    return { url: resolveSegmentUrl(reference, base, url).href, range: null, key: null };
  }
}

interface ListedSegment {
  media: string;
  range: SegmentRange | null;
  durationS: number;
}

/** As many as there are SegmentURLs; the last is as long as the Period lets it be. */
function* listedSegments(
  addressing: TrackAddressing,
  periodS: number | null,
  url: URL,
): Generator<ListedSegment> {
  const { urls, duration, timeline, timescale } = addressing;
  const places = timeline === null ? null : placeSegments(addressing, periodS, url);
  const segmentS = (duration ?? 0) / timescale;
  for (const [index, { media, mediaRange }] of urls.entries()) {
    const leftS = periodS === null ? segmentS : Math.max(0, periodS - index * segmentS);
    const place = places?.next();
    const placedS = place?.done === false ? place.value.durationS : 0;
    const durationS = places === null ? Math.min(segmentS, leftS) : placedS;
    yield { media, range: readMediaRange(mediaRange, url), durationS };
  }
}

/**
 * The Initialization element; without an address it is in the resource that the BaseURL leads to.
 */
function initOf(addressing: TrackAddressing | null, base: URL, url: URL): InitSection | null {
  if (addressing === null || addressing.initialization === null) return null;
  const { sourceURL, range } = addressing.initialization;
  const address = sourceURL === "" ? base : resolveSegmentUrl(sourceURL, base, url);
  return { url: address.href, range: readMediaRange(range, url), key: null };
}

/** As formats are read, but with an error for what leads away from http(s). */
function baseOf(chain: Chain, url: URL): URL {
  return chain.reduceRight(
    (base, { baseUrl }) =>
      baseUrl === ""
        ? base
        : (tryParseUrl(baseUrl, base) ?? resolveSegmentUrl(baseUrl.trim(), base, url)),
    url,
  );
}

function offsetOf(addressing: TrackAddressing | null, { startS }: PeriodTimes): number | null {
  if (startS === null) return null;
  if (addressing === null) return startS;
  return startS - Number(addressing.presentationTimeOffset) / addressing.timescale;
}

function refused(
  code: "live_stream" | "drm_protected" | "format_unavailable",
  url: URL,
  why: string,
) {
  return new ServiceError(
    code,
    `cannot download from the manifest at ${urlForMessage(url)}: ${why}`,
  );
}

function quote(text: string): string {
  return JSON.stringify(shorten(text, 100));
}
