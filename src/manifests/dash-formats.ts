import type { Format } from "../page-info.ts";
import { readPixels } from "../parsers/count.ts";
import { extensionOfMediaType } from "../parsers/media-type.ts";
import {
  type DashRepresentation,
  textExtensions,
  representationsOf,
} from "./dash-representations.ts";
import type { MpdElement } from "./dash-xml.ts";
import {
  type Manifest,
  createFormatIds,
  createSubtitles,
  framesPerSecond,
  kilobits,
  maxFormats,
} from "./manifest.ts";

/** A format and the Representations that it is made of, one a Period, in order. */
export interface DashFormat {
  format: Format;
  tracks: DashRepresentation[];
}

/** The formats and subtitles of the MPD that was found at `url`. */
export function listDashFormats(
  mpd: MpdElement,
  url: URL,
): { listed: DashFormat[]; subtitles: Manifest["subtitles"] } {
  const formatId = createFormatIds("-");
  const subtitles = createSubtitles();
  const listed: DashFormat[] = [];
  const place = createPeriodMerge();
  for (const track of representationsOf(mpd, url)) {
    if (track.kind === "text") subtitles.add(track.language, subtitleOf(track, url));
    if (track.kind !== "video" && track.kind !== "audio") continue;
    const format = formatOf(track, url);
    const { tracks, isNew } = place(format, track.period);
    tracks.push(track);
    if (!isNew || listed.length >= maxFormats) continue;
    format.format_id = formatId(`dash-${track.id ?? Math.floor(format.tbr ?? listed.length)}`);
    listed.push({ format, tracks });
  }
  return { listed, subtitles: subtitles.record() };
}

/**
 * Gives the tracks that a format continues: the nth of those alike in one Period goes on as the nth
 * of them in the next.
 */
function createPeriodMerge(): (
  format: Format,
  period: number,
) => { tracks: DashRepresentation[]; isNew: boolean } {
  const counts = new Map<string, number>();
  const known = new Map<string, DashRepresentation[]>();
  return (format, period) => {
    // In more than one Period all have the MPD's address.
    const alike = JSON.stringify({ ...format, url: "", manifest_url: "" });
    const nth = counts.get(`${period} ${alike}`) ?? 0;
    counts.set(`${period} ${alike}`, nth + 1);
    const tracks = known.get(`${nth} ${alike}`) ?? [];
    known.set(`${nth} ${alike}`, tracks);
    return { tracks, isNew: tracks.length === 0 };
  };
}

/** `format_id` is left empty: it does not belong to what makes two of them alike. */
function formatOf(track: DashRepresentation, url: URL): Format {
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

/** The pictures of a video are there even where its codecs do not name them. */
function stated(codec: string | null): string | null {
  return codec === "none" ? null : codec;
}

function subtitleOf(track: DashRepresentation, url: URL) {
  const codec = track.attribute("codecs")?.slice(0, 4) ?? "";
  const ext = textExtensions.get(track.mime_type ?? "") ?? textExtensions.get(codec) ?? null;
  return { url: (track.file ?? url).href, ext, name: track.label };
}
