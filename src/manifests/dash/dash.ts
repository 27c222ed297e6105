import { ServiceError } from "../../model/errors.ts";
import type { Format } from "../../model/page-info.ts";
import { shorten, urlForMessage } from "../../net/http-url.ts";
import { tryParseUrl } from "../../parsers/url.ts";
import {
  type PeriodTimes,
  presentationDuration,
  removeEarlyPeriods,
  sortPeriods,
  timePeriods,
  availabilityOf,
  refreshOf,
} from "./periods.ts";
import { type Joined, mostSimilar } from "./counterparts.ts";
import { listDashFormats } from "./formats.ts";
import { segmentsOf } from "./segments.ts";
import { type Mpd, parseMpd } from "./xml.ts";
import { withAudioRoles } from "../tracks.ts";
import { findFormat, invalidManifestError, type Manifest } from "../manifest.ts";
import type { Segment, SegmentList } from "../segments.ts";

export type OpenMpd = ReturnType<typeof openMpd>;

interface SegmentOptions {
  /** Of a live stream: milliseconds since 1970; default now. */
  nowMs?: number;
  /** Of a live stream. */
  isReload?: boolean;
  /** The format as an earlier MPD listed it; default: it must have the id. */
  before?: Format;
}

/**
 * Parses a DASH MPD (ISO/IEC 23009-1) fetched from `url`, in time linear in its length.
 *
 * Each video or audio Representation of the Period that offers most is one format; in each other Period it continues
 * with the most similar one. A Representation that is one file has that file's URL and protocol `https`, all others the
 * MPD's URL. Text, segmented or not, becomes subtitles. Image tracks and URLs that are not http(s) are left out. Of
 * several BaseURLs of an element, the one at index `base` is used, or the last one.
 *
 * @throws ServiceError `upstream_invalid` if the root element is not MPD, elements nest deeper than 64
 * levels, or `text` has more than 4 Mi characters; `upstream_unreachable` if it is cut off.
 */
export function openMpd(text: string, url: URL, base = 0) {
  const mpd = parseMpd(text, url, base);
  const { root, refused } = mpd;
  if (refused !== null) throw invalidManifestError(url, `it must not have ${refused}, which is not understood`);
  const isLive = root.attributes.get("type") === "dynamic";
  if (isLive) removeEarlyPeriods(root);
  sortPeriods(root);
  const { listed, texts, subtitles } = listDashFormats(root, url);
  const formats = listed.map(({ format }) => format);
  const isOver = availabilityOf(root, timePeriods(root), Date.now())?.endS === Infinity;
  const duration = presentationDuration(root, isLive && !isOver);
  const now = root.children.length > 0 ? "is_live" : "is_upcoming";
  const live_status = isLive ? (isOver ? "was_live" : now) : "not_live";
  const listing: Manifest = { formats: withAudioRoles(formats), subtitles, duration, live_status };
  return {
    listing,
    /** How many values of `base` make a difference. */
    bases: Math.max(1, mpd.baseUrls),
    isLive,
    /** Where a live MPD wants to be read again; `null`: at the same place. */
    location: tryParseUrl(mpd.location.text, url),
    /** What says what time it is: its UTCTiming elements. */
    clocks: root.descriptors.filter(({ name }) => name === "UTCTiming").map(({ fields }) => fields),
    /**
     * Returns the segments of a listed format, or of subtitles that have a `format_id`, through all Periods that continue it. Of a live stream those that are
     * available at `nowMs`, and if `isReload` those that have just left its window; if it no longer lists the format, of the one that is most similar to `before`.
     *
     * @throws ServiceError `upstream_invalid` if the MPD describes its segments incompletely or wrongly, lists more than
     * 200,000, or has more Representations or descriptors than are read; `live_stream` for a dynamic MPD without SegmentTemplate; `drm_protected` for
     * ContentProtection; `format_unavailable` if it lists no such format, or a Period has nothing that could continue it;
     * `address_blocked` for a URL that is not http(s).
     */
    segments(formatId: string, { nowMs = Date.now(), isReload = false, before }: SegmentOptions = {}): SegmentList {
      checkPresentation(mpd, url);
      const periods = timePeriods(root);
      const available = availabilityOf(root, periods, nowMs);
      const availability = available && { ...available, isReload };
      const rule = "a dynamic MPD must have an availabilityStartTime";
      if (isLive && availability === null) throw invalidManifestError(url, rule);
      const hasEnded = availability === null || availability.endS === Infinity;
      const wanted = findFormat(formats, formatId);
      const found =
        listed.find(({ format }) => format === wanted) ??
        texts.find(({ format }) => format.format_id === formatId) ??
        (before && mostSimilar(listed, before));
      if (found === undefined) throw refusalError("format_unavailable", url, `it lists no format ${quote(formatId)}`);
      const { representations, missing, replaced } = found.join();
      checkProtection([found.format, ...representations], url);
      // What a live stream lacks for a while is a gap in it.
      if (missing !== null && hasEnded) throw discontinuedError(formatId, missing, url);
      const { segments, ...beyond } = segmentsOf(representations, periods, url, availability);
      const others = { ...beyond, ...replacedIn(replaced, periods) };
      const isDated = availability !== null && segments.every(({ dateMs }) => dateMs !== undefined);
      if (!hasEnded) return { segments, hasEnded, isDated, refreshS: refreshOf(root, longestOf(segments)) };
      if (segments.length > 0) return { segments, hasEnded, refreshS: 0, ...(isDated && { isDated }), ...others };
      throw invalidManifestError(url, `${quote(formatId)} must have segments`);
    },
  };
}

function checkPresentation({ unread, hasLinks }: Mpd, url: URL): void {
  if (unread !== null) throw invalidManifestError(url, unread);
  if (hasLinks) throw invalidManifestError(url, "its links to remote elements (xlink:href) must be resolved");
}

function checkProtection(found: readonly Pick<Format, "has_drm">[], url: URL): void {
  if (found.every(({ has_drm }) => !has_drm)) return;
  throw refusalError("drm_protected", url, "its keys come from a licence server (ContentProtection)");
}

function longestOf(segments: readonly Segment[]): number {
  return segments.reduce((longestS, { durationS }) => Math.max(longestS, durationS), 0);
}

function refusalError(code: "drm_protected" | "format_unavailable", url: URL, reason: string): ServiceError {
  return new ServiceError(code, `cannot download from the manifest at ${urlForMessage(url)}: ${reason}`);
}

/** @param period The first one without it, counted from 0. */
function discontinuedError(formatId: string, period: number, url: URL): ServiceError {
  const reason = `Period ${period + 1} has nothing of the container and codecs of ${quote(formatId)}`;
  return refusalError("format_unavailable", url, reason);
}

function replacedIn(replaced: Joined["replaced"], periods: readonly PeriodTimes[]): Pick<SegmentList, "replaced"> {
  if (replaced.length === 0) return {};
  const firstS = periods[0]?.startS ?? 0;
  const spans = replaced.map(({ period, by: { language, roles = [] } }) => {
    const { startS: atS = null, durationS = null } = periods[period] ?? {};
    const startS = atS === null ? 0 : atS - firstS;
    const endS = atS === null || durationS === null ? Infinity : startS + durationS;
    const words = [language, ...roles].filter((word) => word !== null);
    const what = `Period ${period + 1} has this track only as ${quote(words.join(", "))}`;
    return { startS, endS, what };
  });
  return { replaced: spans };
}

function quote(text: string): string {
  return JSON.stringify(shorten(text, 100));
}
