import { tryParseUrl } from "../../parsers/url.ts";
import { parsePixels } from "../../parsers/count.ts";
import { finish, type Steps } from "../../parsers/steps.ts";
import { parseLine } from "../../parsers/text.ts";
import { framesPerSecond, kilobits, languageTag } from "../attributes.ts";
import { type Codecs, splitCodecs } from "../codecs.ts";
import { createFormatIds } from "../format-ids.ts";
import {
  type Attributes,
  checkPlaylist,
  type PlaylistLine,
  createVariables,
  readAttributes,
  findMultivariantTag,
  readLines,
  splitLines,
} from "./lines.ts";
import { readMediaPlaylist, unknownHlsFormat } from "./media.ts";
import { createLicenceCheck } from "./key.ts";
import { type Manifest, type ManifestFormat, maxFormats } from "../manifest.ts";
import { createSubtitles } from "../subtitles.ts";

/**
 * Lists the formats and subtitles of an HLS playlist (RFC 8216, 8216bis) fetched from `url`, in time linear
 * in its length.
 *
 * In a multivariant playlist each variant is a format; then come the audio renditions that have a URL, those
 * of the best variant's group first, in a group the default one first. I-frame playlists are not formats. `tbr` is
 * BANDWIDTH (the peak), or AVERAGE-BANDWIDTH if that is missing; `averageTbr` is AVERAGE-BANDWIDTH, or estimated from
 * BANDWIDTH. A media playlist is one format. URLs that are not http(s) are left out.
 *
 * @throws ServiceError `upstream_invalid` unless `text` begins with #EXTM3U (after optional white space and
 * byte order mark) and has at most 4 Mi characters.
 */
export function readHls(text: string, url: URL): Manifest {
  return finish(readHlsInSteps(text, url));
}

/** Returns what `readHls` returns, in steps. */
export function* readHlsInSteps(text: string, url: URL): Steps<Manifest> {
  checkPlaylist(text, url);
  yield;
  const readAs = (yield* findMultivariantTag(text)) ? readMultivariant : readMediaPlaylist;
  return yield* readAs(text, url);
}

interface Variant {
  attributes: Attributes;
  codecs: Codecs;
  url: URL;
}

interface Rendition {
  attributes: Attributes;
  /** `null`: its media is in the variants, or its URL is not http(s). */
  url: URL | null;
}

interface AudioGroup {
  renditions: Rendition[];
  /** The rendition whose media is in the variants. */
  included: Rendition | undefined;
  acodec: string | null;
  /** Of the best variant that references the group, kbit/s; 0: none does. */
  tbr: number;
}

interface MultivariantPlaylist {
  variants: Variant[];
  renditions: Rendition[];
  has_drm: boolean;
}

function* readMultivariant(text: string, url: URL): Steps<Manifest> {
  const playlist = yield* parseMultivariant(text, url);
  const formatId = createFormatIds("-");
  const groups = audioGroups(playlist);
  const common = { manifest_url: url.href, has_drm: playlist.has_drm };
  const formats = playlist.variants.map((variant, index): ManifestFormat => {
    const format = variantFormat(variant, groups.get(variant.attributes.get("AUDIO") ?? ""));
    const format_id = formatId(`hls-${Math.floor(format.tbr ?? index)}`);
    return { ...common, ...format, format_id };
  });
  for (const { renditions, acodec } of [...groups.values()].toSorted((a, b) => b.tbr - a.tbr)) {
    for (const rendition of renditions.toSorted((a, b) => rankOf(b) - rankOf(a))) {
      if (rendition.url === null || formats.length >= maxFormats) continue;
      const format = renditionFormat(rendition, rendition.url, acodec);
      formats.push({ ...common, ...format, format_id: formatId(format.format_id) });
    }
  }
  return { formats, subtitles: subtitlesOf(playlist), duration: null, live_status: null };
}

/** Reads the variants and renditions of a multivariant playlist. */
export function* parseMultivariant(text: string, url: URL): Steps<MultivariantPlaylist> {
  const playlist: MultivariantPlaylist = { variants: [], renditions: [], has_drm: false };
  const variables = createVariables(url);
  const keys = createLicenceCheck();
  let pending: Attributes | null = null;
  let seen = 0;
  for (const lines of splitLines(text)) {
    for (const line of readLines(lines)) {
      if (line.tag === null && pending === null) continue;
      if (seen >= 2 * maxFormats || playlist.variants.length >= maxFormats) return playlist;
      readLine(line);
    }
    yield;
  }
  return playlist;

  function readLine({ tag, value }: PlaylistLine): void {
    if (tag === "#EXT-X-DEFINE") variables.define(value);
    else if (tag === "#EXT-X-STREAM-INF") {
      pending = readAttributes(variables.substitute(value));
    } else if (tag === "#EXT-X-MEDIA") {
      seen += 1;
      const attributes = readAttributes(variables.substitute(value));
      const uri = attributes.get("URI");
      playlist.renditions.push({ attributes, url: tryParseUrl(uri, url) });
    } else if (tag === "#EXT-X-SESSION-KEY" || tag === "#EXT-X-KEY") {
      keys.set(variables.substitute(value));
      playlist.has_drm = keys.isLicensed;
    } else if (tag === null && pending !== null) {
      seen += 1;
      const variantUrl = tryParseUrl(variables.substitute(value), url);
      const codecs = splitCodecs(pending.get("CODECS"));
      if (variantUrl !== null) playlist.variants.push({ attributes: pending, codecs, url: variantUrl });
      pending = null;
    }
  }
}

/** Assumed ratio of peak to mean bit rate if only the peak is known, as ffmpeg writes it for constant bit rates. */
const peakToAverage = 1.1;

type FormatPart = Omit<ManifestFormat, "manifest_url" | "has_drm">;

/** Converts a variant with its audio group; leaves `format_id` empty. */
function variantFormat({ attributes, codecs, url }: Variant, group: AudioGroup | undefined): FormatPart {
  const [, width, height] = /^(\d+)[x*](\d+)$/i.exec(attributes.get("RESOLUTION") ?? "") ?? [];
  const hasSize = parsePixels(width) !== null;
  const vcodec = codecs.vcodec === "none" && hasSize ? null : codecs.vcodec;
  const peakTbr = kilobits(attributes.get("BANDWIDTH"));
  const listedTbr = kilobits(attributes.get("AVERAGE-BANDWIDTH"));
  const averageTbr = listedTbr ?? (peakTbr === null ? null : peakTbr / peakToAverage);
  const isAudioSeparate = group !== undefined && group.included === undefined;
  return {
    ...unknownHlsFormat,
    format_id: "",
    url: url.href,
    ext: vcodec === "none" ? "m4a" : "mp4",
    width: parsePixels(width),
    height: parsePixels(height),
    fps: framesPerSecond(attributes.get("FRAME-RATE")),
    vcodec,
    // Without CODECS a variant may be muxed although it references a group.
    acodec: isAudioSeparate && vcodec !== "none" && attributes.has("CODECS") ? "none" : codecs.acodec,
    tbr: peakTbr ?? listedTbr,
    ...(averageTbr !== null && { averageTbr }),
    language: languageTag(group?.included?.attributes.get("LANGUAGE")),
  };
}

function renditionFormat({ attributes }: Rendition, url: URL, acodec: string | null): FormatPart {
  const name = ["hls-audio", attributes.get("GROUP-ID"), attributes.get("NAME")];
  return {
    ...unknownHlsFormat,
    format_id: name.filter(Boolean).join("-"),
    url: url.href,
    ext: "m4a",
    vcodec: "none",
    acodec,
    tbr: kilobits(attributes.get("BANDWIDTH")),
    language: languageTag(attributes.get("LANGUAGE")),
  };
}

/** Ranks renditions: DEFAULT, then AUTOSELECT (RFC 8216 §4.3.4.1). */
function rankOf({ attributes }: Rendition): number {
  const isSet = (name: string) => attributes.get(name)?.toUpperCase() === "YES";
  return isSet("DEFAULT") ? 2 : isSet("AUTOSELECT") ? 1 : 0;
}

/** Groups audio renditions by GROUP-ID; a variant's CODECS cover its group (RFC 8216 §4.3.4.2). */
function audioGroups({ variants, renditions }: MultivariantPlaylist): Map<string, AudioGroup> {
  const groups = new Map<string, AudioGroup>();
  for (const rendition of renditions) {
    if (!isOfType(rendition.attributes, "AUDIO")) continue;
    const id = rendition.attributes.get("GROUP-ID") ?? "";
    const group = groups.get(id) ?? { renditions: [], included: undefined, acodec: null, tbr: 0 };
    group.renditions.push(rendition);
    if (!rendition.attributes.get("URI")) group.included ??= rendition;
    groups.set(id, group);
  }
  for (const { attributes, codecs } of variants) {
    const group = groups.get(attributes.get("AUDIO") ?? "");
    if (group === undefined) continue;
    if (codecs.acodec !== "none") group.acodec ??= codecs.acodec;
    group.tbr = Math.max(group.tbr, kilobits(attributes.get("BANDWIDTH")) ?? 0);
  }
  return groups;
}

/** Subtitle renditions are playlists of WebVTT segments. */
function subtitlesOf({ renditions }: MultivariantPlaylist): Manifest["subtitles"] {
  const subtitles = createSubtitles();
  for (const { attributes, url } of renditions) {
    if (url === null || !isOfType(attributes, "SUBTITLES")) continue;
    const name = parseLine(attributes.get("NAME"));
    subtitles.add(languageTag(attributes.get("LANGUAGE")), { url: url.href, ext: "vtt", name });
  }
  return subtitles.record();
}

function isOfType(attributes: Attributes, type: string): boolean {
  return attributes.get("TYPE")?.toUpperCase() === type;
}
