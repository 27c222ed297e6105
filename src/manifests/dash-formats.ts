import type { Format } from "../page-info.ts";
import type { Steps } from "../parsers/steps.ts";
import { parsePixels } from "../parsers/count.ts";
import { extensionOfMediaType } from "../parsers/media-type.ts";
import { framesPerSecond, kilobits } from "./attributes.ts";
import {
  type DashRepresentation,
  textExtensions,
  representationsOf,
} from "./dash-representations.ts";
import type { MpdElement } from "./dash-xml.ts";
import { createFormatIds } from "./format-ids.ts";
import { type Manifest, maxFormats } from "./manifest.ts";
import { createSubtitles } from "./subtitles.ts";

/** A format and its Representations, one per Period, in order. */
export interface DashFormat {
  format: Format;
  representations: DashRepresentation[];
}

/** Lists the formats and subtitles of an MPD fetched from `url`. */
export function* listDashFormats(
  mpd: MpdElement,
  url: URL,
): Steps<{ listed: DashFormat[]; subtitles: Manifest["subtitles"] }> {
  const formatId = createFormatIds("-");
  const subtitles = createSubtitles();
  const listed: DashFormat[] = [];
  const continuedBy = createPeriodMerge();
  for (const representation of representationsOf(mpd, url)) {
    yield;
    const { kind, id, language, period } = representation;
    if (kind === "text") subtitles.add(language, subtitleOf(representation, url));
    if (kind !== "video" && kind !== "audio") continue;
    const format = formatOf(representation, url);
    const representations = continuedBy(format, period);
    representations.push(representation);
    if (representations.length > 1 || listed.length >= maxFormats) continue;
    format.format_id = formatId(`dash-${id ?? Math.floor(format.tbr ?? listed.length)}`);
    listed.push({ format, representations });
  }
  return { listed, subtitles: subtitles.record() };
}

/**
 * Returns a function that finds the Representations that a format continues, empty for a new format: the
 * nth of several identical formats in a Period continues the nth of the Period before.
 */
function createPeriodMerge(): (format: Format, period: number) => DashRepresentation[] {
  const counts = new Map<string, number>();
  const known = new Map<string, DashRepresentation[]>();
  return (format, period) => {
    // With more than one Period every format has the MPD's URL.
    const key = JSON.stringify({ ...format, url: "", manifest_url: "" });
    const nth = counts.get(`${period} ${key}`) ?? 0;
    counts.set(`${period} ${key}`, nth + 1);
    const representations = known.get(`${nth} ${key}`) ?? [];
    known.set(`${nth} ${key}`, representations);
    return representations;
  };
}

/** Leaves `format_id` empty: it does not count when formats are compared. */
function formatOf(representation: DashRepresentation, url: URL): Format {
  const { kind, codecs, file, mime_type, attribute } = representation;
  return {
    format_id: "",
    url: (file ?? url).href,
    manifest_url: url.href,
    protocol: file === null ? "dash" : "https",
    ext: extensionOfMediaType(mime_type) ?? (kind === "audio" ? "m4a" : "mp4"),
    mime_type,
    width: kind === "video" ? parsePixels(attribute("width")) : null,
    height: kind === "video" ? parsePixels(attribute("height")) : null,
    fps: kind === "video" ? framesPerSecond(attribute("frameRate")) : null,
    vcodec: kind === "audio" ? "none" : knownCodec(codecs.vcodec),
    acodec: kind === "audio" ? knownCodec(codecs.acodec) : codecs.acodec,
    tbr: kilobits(attribute("bandwidth")),
    filesize: null,
    language: representation.language,
    has_drm: representation.has_drm,
  };
}

/** A video Representation has video even if its codecs list none. */
function knownCodec(codec: string | null): string | null {
  return codec === "none" ? null : codec;
}

function subtitleOf({ attribute, file, mime_type, label }: DashRepresentation, url: URL) {
  const codec = attribute("codecs")?.slice(0, 4) ?? "";
  const ext = textExtensions.get(mime_type ?? "") ?? textExtensions.get(codec) ?? null;
  return { url: (file ?? url).href, ext, name: label };
}
