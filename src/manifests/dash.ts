import type { Format } from "../page-info.ts";
import { readAddress } from "../values/address.ts";
import { readPixels } from "../values/count.ts";
import { xsDuration } from "./dash-duration.ts";
import { type MpdElement, readMpd } from "./dash-xml.ts";
import {
  type Codecs,
  type Manifest,
  checkLength,
  createFormatIds,
  createSubtitles,
  framesPerSecond,
  invalidManifest,
  kilobits,
  languageTag,
  maxFormats,
  splitCodecs,
} from "./manifest.ts";
import { bareMediaType, extensionOfMediaType } from "../values/media-type.ts";
import { readLine } from "../values/text.ts";

/**
 * Reads a DASH MPD (ISO/IEC 23009-1) that was found at `url`.
 *
 * One format per Representation of pictures or sound; one that is alike but for its id in a further
 * Period continues that of the Period before and is not listed again. A Representation that is one
 * file gives that file's address and protocol `https`, all others the MPD's. Text becomes
 * subtitles, also text in segments (with the MPD's address); image tracks are left out, and so is
 * what is not at an http(s) address. Linear in the length of `text`.
 *
 * @throws ServiceError `upstream_invalid` where the root element is not MPD, elements nest deeper
 * than 64, or there are more than 4 Mi characters.
 */
export function readDash(text: string, url: URL): Manifest {
  checkLength(text, url);
  const mpd = readMpd(text);
  if (mpd === undefined) {
    throw invalidManifest(url, "a DASH manifest must be an MPD element, at most 64 levels deep");
  }
  const formatId = createFormatIds();
  const subtitles = createSubtitles();
  const formats: Format[] = [];
  const isNew = createPeriodMerge();
  for (const track of tracksOf(mpd, url)) {
    if (formats.length >= maxFormats) break;
    if (track.kind === "text") subtitles.add(track.language, subtitleOf(track, url));
    if (track.kind !== "video" && track.kind !== "audio") continue;
    const format = formatOf(track, url);
    if (!isNew(format, track.period)) continue;
    format.format_id = formatId(`dash-${track.id ?? Math.floor(format.tbr ?? formats.length)}`);
    formats.push(format);
  }
  const isLive = mpd.attributes.get("type") === "dynamic";
  return {
    formats,
    subtitles: subtitles.record(),
    duration: durationOf(mpd, isLive),
    live_status: isLive ? "is_live" : "not_live",
  };
}

/**
 * Tells whether no earlier Period has such a format: the nth of those alike in one Period goes on
 * as the nth of them in the next.
 */
function createPeriodMerge(): (format: Format, period: number) => boolean {
  const counts = new Map<string, number>();
  const listed = new Set<string>();
  return (format, period) => {
    // In more than one Period all have the MPD's address.
    const alike = JSON.stringify({ ...format, url: "", manifest_url: "" });
    const nth = counts.get(`${period} ${alike}`) ?? 0;
    counts.set(`${period} ${alike}`, nth + 1);
    const isListed = listed.has(`${nth} ${alike}`);
    listed.add(`${nth} ${alike}`);
    return !isListed;
  };
}

interface Track {
  period: number;
  kind: "video" | "audio" | "text" | null;
  id: string | null;
  codecs: Codecs;
  mime_type: string | null;
  language: string | null;
  /** Address of the one file that it is; `null`: it comes in segments. */
  file: URL | null;
  has_drm: boolean;
  label: string | null;
  /** An attribute of the Representation or, where it lacks it, of what it stands in. */
  attribute: (name: string) => string | undefined;
}

function* tracksOf(mpd: MpdElement, url: URL): Generator<Track> {
  const mpdBase = resolve(mpd, url);
  for (const [index, period] of mpd.children.entries()) {
    const periodBase = resolve(period, mpdBase);
    for (const set of period.children) {
      const setBase = resolve(set, periodBase);
      for (const representation of set.children) {
        const base = resolve(representation, setBase);
        const track = trackOf([representation, set, period, mpd], index, base);
        if (track !== null) yield track;
      }
    }
  }
}

/** The track of a Representation (first in `chain`, the MPD last); `null`: it may not be fetched. */
function trackOf(
  chain: readonly [MpdElement, MpdElement, MpdElement, MpdElement],
  period: number,
  base: URL | null,
): Track | null {
  const [representation, set, , mpd] = chain;
  const isSegmented = mpd.children.length > 1 || chain.some((element) => element.isSegmented);
  const isAddressed = chain.some((element) => element.baseUrl !== "");
  if (!isSegmented && isAddressed && base === null) return null;
  const isFile = !isSegmented && isAddressed && base?.pathname.endsWith("/") === false;
  const attribute = (name: string) =>
    chain.find(({ attributes }) => attributes.has(name))?.attributes.get(name);
  const codecs = splitCodecs(attribute("codecs"));
  const mime_type = bareMediaType(attribute("mimeType") ?? null);
  return {
    period,
    kind: kindOf(attribute("contentType"), mime_type, codecs),
    id: representation.attributes.get("id") ?? null,
    codecs,
    mime_type,
    language: languageTag(attribute("lang")),
    file: isFile ? base : null,
    has_drm: chain.some((element) => element.isProtected),
    label: readLine(set.label) ?? readLine(attribute("label")),
    attribute,
  };
}

/** Base address of what is in `element`; `null` where it leads away from http(s). */
function resolve(element: MpdElement, base: URL | null): URL | null {
  return base === null || element.baseUrl === "" ? base : readAddress(element.baseUrl, base);
}

function kindOf(
  contentType: string | undefined,
  mimeType: string | null,
  codecs: Codecs,
): Track["kind"] {
  for (const kind of ["video", "audio", "text"] as const) {
    if (contentType === kind || mimeType?.startsWith(`${kind}/`)) return kind;
  }
  if (mimeType?.startsWith("image/")) return null;
  if (codecs.vcodec !== null && codecs.vcodec !== "none") return "video";
  if (codecs.acodec !== null && codecs.acodec !== "none") return "audio";
  return codecs.text || textExtensions.has(mimeType ?? "") ? "text" : null;
}

/** The pictures of a video are there even where its codecs do not name them. */
function stated(codec: string | null): string | null {
  return codec === "none" ? null : codec;
}

/** `format_id` is left empty: it does not belong to what makes two of them alike. */
function formatOf(track: Track, url: URL): Format {
  const { kind, codecs, attribute } = track;
  return {
    format_id: "",
    url: (track.file ?? url).href,
    manifest_url: url.href,
    protocol: track.file === null ? "dash" : "https",
    ext: extensionOfMediaType(track.mime_type) ?? (kind === "audio" ? "m4a" : "mp4"),
    mime_type: track.mime_type,
    width: kind === "video" ? readPixels(attribute("width")) : null,
    height: kind === "video" ? readPixels(attribute("height")) : null,
    fps: kind === "video" ? framesPerSecond(attribute("frameRate")) : null,
    vcodec: kind === "audio" ? "none" : stated(codecs.vcodec),
    acodec: kind === "audio" ? stated(codecs.acodec) : codecs.acodec,
    tbr: kilobits(attribute("bandwidth")),
    filesize: null,
    language: track.language,
    has_drm: track.has_drm,
  };
}

function subtitleOf(track: Track, url: URL) {
  const codec = track.attribute("codecs")?.slice(0, 4) ?? "";
  const ext = textExtensions.get(track.mime_type ?? "") ?? textExtensions.get(codec) ?? null;
  return { url: (track.file ?? url).href, ext, name: track.label };
}

const textExtensions: ReadonlyMap<string, string> = new Map([
  ["text/vtt", "vtt"],
  ["wvtt", "vtt"],
  ["application/ttml+xml", "ttml"],
  ["stpp", "ttml"],
  ["application/x-subrip", "srt"],
]);

/** As stated, else up to the end of the last Period; of a live stream only as stated. */
function durationOf(mpd: MpdElement, isLive: boolean): number | null {
  const whole = xsDuration(mpd.attributes.get("mediaPresentationDuration"));
  if (whole !== null || isLive) return whole;
  let end: number | null = 0;
  for (const { attributes } of mpd.children) {
    const start: number | null = xsDuration(attributes.get("start")) ?? end;
    const duration = xsDuration(attributes.get("duration"));
    end = start === null || duration === null ? null : start + duration;
  }
  return end || null;
}
