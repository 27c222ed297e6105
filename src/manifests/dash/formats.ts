import type { Subtitle } from "../../model/entry.ts";
import { isRare } from "../../model/format-ranking.ts";
import type { Format } from "../../model/page-info.ts";
import { parsePixels } from "../../parsers/quantities.ts";
import { extensionOfMediaType } from "../../parsers/media-type.ts";
import { codecFamily, framesPerSecond, kilobits } from "../attributes.ts";
import {
  dashRoles,
  dashSubtitleRole,
  isTrickMode,
  preferences,
  type TrackStatement,
  unknownProperty,
} from "../tracks.ts";
import type { TrackKind } from "../track-kind.ts";
import { addNames, withNamedRole } from "../track-name.ts";
import { type DashRepresentation, textExtensions, representationsOf } from "./representations.ts";
import { type Candidate, comparePeriods, type Joined } from "./counterparts.ts";
import { timePeriods } from "./periods.ts";
import type { MpdElement } from "./xml.ts";
import { createFormatIds, createSubtitles, invalidManifestError, type Manifest, maxFormats } from "../manifest.ts";

/** A format and the Representations that it has through the Periods. */
interface DashFormat {
  format: Format;
  join(): Joined;
}

/**
 * Lists the formats and subtitles of an MPD fetched from `url`: what belongs together in several Periods is
 * one format. Leaves out layers that only another Representation makes decodable.
 */
export function listDashFormats(
  mpd: MpdElement,
  url: URL,
): { listed: (DashFormat & Candidate)[]; texts: DashFormat[]; subtitles: Manifest["subtitles"] } {
  const formatId = createFormatIds("-");
  const candidates = findCandidates(mpd, url);
  const durations = timePeriods(mpd).map(({ durationS }) => durationS);
  const found: (DashFormat & Candidate)[] = [];
  for (const ofKind of [candidates.video, candidates.audio]) {
    const { listed, join } = comparePeriods(ofKind, durations);
    for (const [index, preference] of preferences(listed.map(statementOf)).entries()) {
      const candidate = listed[index]!;
      if (preference < 0) candidate.format.preference = preference;
      found.push({ ...candidate, join: () => join(candidate) });
    }
  }
  const listed = found.toSorted((a, b) => a.representation.index - b.representation.index).slice(0, maxFormats);
  for (const [index, { format, representation }] of listed.entries()) {
    format.format_id = formatId(`dash-${representation.id ?? Math.floor(format.tbr ?? index)}`);
  }
  return { listed, ...listTexts(candidates.text, durations, url) };
}

/** Text in segments is found again by the URL of the MPD and an id. */
function listTexts(candidates: Candidate[], durations: readonly (number | null)[], url: URL) {
  const subtitles = createSubtitles();
  const texts: DashFormat[] = [];
  const formatId = createFormatIds("-");
  const { listed, join } = comparePeriods(candidates, durations);
  for (const [index, candidate] of listed.slice(0, maxFormats).entries()) {
    const { format, representation } = candidate;
    format.format_id = formatId(`text-${representation.id ?? index}`);
    if (representation.file === null) texts.push({ format, join: () => join(candidate) });
    subtitles.add(representation.language, subtitleOf(candidate, url));
  }
  return { texts, subtitles: subtitles.record() };
}

type Candidates = Record<"video" | "audio" | "text", Candidate[]>;

/** Leaves out what is for fast forward, and what must be ignored because a property of it is not understood. */
function findCandidates(mpd: MpdElement, url: URL) {
  const candidates: Candidates = { video: [], audio: [], text: [] };
  const ignored = new Map<TrackKind, string>();
  let unstated: string | undefined;
  for (const representation of representationsOf(mpd, url)) {
    const { kind, isLayer, descriptors } = representation;
    if (kind === null) unstated ??= unstatedCodecs(representation);
    if (kind === null || isTrickMode(descriptors)) continue;
    const property = unknownProperty(descriptors);
    if (property !== undefined) ignored.set(kind, property);
    else if (!isLayer) candidates[kind].push({ format: formatOf(representation, url), representation });
  }
  checkIgnored(candidates, ignored, url);
  if (unstated !== undefined && (candidates.video.length === 0 || !hasAudio(candidates))) {
    throw invalidManifestError(url, "an AdaptationSet has no mimeType, so it may be missing audio or video", unstated);
  }
  addNames(
    candidates.audio.map(({ format: audio, representation: { label, period } }) => {
      return { audio, name: label, group: `${period} ${codecFamily(audio.acodec) ?? ""}` };
    }),
  );
  return candidates;
}

/** Returns the codecs, `""` for none, of what does not state its kind, although it must have a media type (ISO/IEC 23009-1 §5.3.7). */
function unstatedCodecs({ attribute, mime_type }: DashRepresentation): string | undefined {
  const isStated = mime_type !== null || attribute("contentType") !== undefined;
  return isStated ? undefined : (attribute("codecs") ?? "");
}

function hasAudio({ video, audio }: Candidates): boolean {
  return audio.length > 0 || video.some(({ format: { acodec } }) => acodec !== null && acodec !== "none");
}

/** @throws ServiceError `upstream_invalid` if nothing is left of the video or of the audio: it would be missing. */
function checkIgnored(candidates: Candidates, ignored: ReadonlyMap<TrackKind, string>, url: URL): void {
  const isLeft = { video: candidates.video.length > 0, audio: hasAudio(candidates) };
  for (const kind of ["video", "audio"] as const) {
    const property = ignored.get(kind);
    if (property === undefined || isLeft[kind]) continue;
    throw invalidManifestError(url, `all its ${kind} has an EssentialProperty that is not understood`, property);
  }
}

function statementOf({ format, representation: { attribute } }: Candidate): TrackStatement {
  const { roles = [], vcodec, language } = format;
  const stated = attribute("selectionPriority")?.trim() ?? "";
  const priority = /^\d{1,10}$/.test(stated) ? Number(stated) : 1;
  // Audio that few players decode comes last, in whatever language it is.
  return { roles, priority, ...(vcodec === "none" && !isRare(format) && { language }) };
}

/** Leaves `format_id` empty: it does not count when formats are compared. */
function formatOf(representation: DashRepresentation, url: URL): Format {
  const { kind, codecs, file, mime_type, attribute, label } = representation;
  const roles = [...withNamedRole(dashRoles(representation.descriptors), kind === "audio" ? label : null)];
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
    filesize_approx: null,
    language: representation.language,
    ...(roles.length > 0 && { roles }),
    has_drm: representation.has_drm,
  };
}

/** A video Representation has video even if its codecs list none. */
function knownCodec(codec: string | null): string | null {
  return codec === "none" ? null : codec;
}

function subtitleOf({ format, representation }: Candidate, url: URL): Subtitle {
  const { attribute, file, mime_type, label, descriptors } = representation;
  const codec = attribute("codecs")?.slice(0, 4) ?? "";
  const ext = textExtensions.get(mime_type ?? "") ?? textExtensions.get(codec) ?? null;
  const found = { url: (file ?? url).href, ext, name: label, role: dashSubtitleRole(descriptors) };
  return file === null ? { ...found, manifest_url: url.href, format_id: format.format_id } : found;
}
