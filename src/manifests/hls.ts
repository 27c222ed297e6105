import type { Format } from "../page-info.ts";
import { tryParseUrl } from "../parsers/url.ts";
import { readPixels } from "../parsers/count.ts";
import { createVariables, readAttributes, readLines } from "./hls-lines.ts";
import { readMediaPlaylist } from "./hls-media.ts";
import { isLicensedKey } from "./hls-key.ts";
import { checkPlaylist, isMultivariant } from "./hls-playlist.ts";
import {
  type Codecs,
  type Manifest,
  createFormatIds,
  createSubtitles,
  framesPerSecond,
  kilobits,
  languageTag,
  maxFormats,
  splitCodecs,
} from "./manifest.ts";
import { readLine } from "../parsers/text.ts";

/**
 * Reads an HLS playlist (RFC 8216, 8216bis) that was found at `url`.
 *
 * A multivariant playlist gives one format per variant and, after them, one per audio rendition of
 * its own, first those that the best variant names, of these first the default one; I-frame streams
 * are none. `tbr` is BANDWIDTH, the peak, since every variant must state it;
 * AVERAGE-BANDWIDTH only where it is missing. A media playlist gives itself as one format.
 * Addresses that are not http(s) are left out. Linear in the length of `text`.
 *
 * @throws ServiceError `upstream_invalid` unless `text` begins with #EXTM3U (white space and a byte
 * order mark may stand before it) and has at most 4 Mi characters.
 */
export function readHls(text: string, url: URL): Manifest {
  checkPlaylist(text, url);
  return isMultivariant(text) ? readMultivariant(text, url) : readMediaPlaylist(text, url);
}

type Attributes = ReadonlyMap<string, string>;

interface Variant {
  attributes: Attributes;
  codecs: Codecs;
  url: URL;
}

interface Rendition {
  attributes: Attributes;
  /** `null`: its medium is in the variants themselves, or its address may not be fetched. */
  url: URL | null;
}

interface AudioGroup {
  renditions: Rendition[];
  /** The one whose medium is in the variants themselves. */
  included: Rendition | undefined;
  acodec: string | null;
  /** That of the best variant that names it, kbit/s; 0: none does. */
  tbr: number;
}

interface MultivariantPlaylist {
  variants: Variant[];
  renditions: Rendition[];
  has_drm: boolean;
}

function readMultivariant(text: string, url: URL): Manifest {
  const listing = list(text, url);
  const formatId = createFormatIds("-");
  const groups = audioGroups(listing);
  const common = { manifest_url: url.href, has_drm: listing.has_drm };
  const formats = listing.variants.map((variant, index): Format => {
    const format = variantFormat(variant, groups.get(variant.attributes.get("AUDIO") ?? ""));
    const format_id = formatId(`hls-${Math.floor(format.tbr ?? index)}`);
    return { ...common, ...format, format_id };
  });
  for (const { renditions, acodec } of [...groups.values()].toSorted((a, b) => b.tbr - a.tbr)) {
    for (const rendition of renditions.toSorted((a, b) => choiceOf(b) - choiceOf(a))) {
      if (rendition.url === null || formats.length >= maxFormats) continue;
      const format = renditionFormat(rendition, rendition.url, acodec);
      formats.push({ ...common, ...format, format_id: formatId(format.format_id) });
    }
  }
  return { formats, subtitles: subtitlesOf(listing), duration: null, live_status: null };
}

function list(text: string, url: URL): MultivariantPlaylist {
  const listing: MultivariantPlaylist = { variants: [], renditions: [], has_drm: false };
  const variables = createVariables(url);
  let pending: Attributes | null = null;
  let seen = 0;
  for (const { tag, value } of readLines(text)) {
    if (tag === null && pending === null) continue;
    if (seen >= 2 * maxFormats || listing.variants.length >= maxFormats) break;
    if (tag === "#EXT-X-DEFINE") variables.define(value);
    else if (tag === "#EXT-X-STREAM-INF") {
      pending = readAttributes(variables.substitute(value));
    } else if (tag === "#EXT-X-MEDIA") {
      seen += 1;
      const attributes = readAttributes(variables.substitute(value));
      const uri = attributes.get("URI");
      listing.renditions.push({ attributes, url: tryParseUrl(uri, url) });
    } else if (tag === "#EXT-X-SESSION-KEY" || tag === "#EXT-X-KEY") {
      listing.has_drm ||= isLicensedKey(variables.substitute(value));
    } else if (tag === null && pending !== null) {
      seen += 1;
      const address = tryParseUrl(variables.substitute(value), url);
      const codecs = splitCodecs(pending.get("CODECS"));
      if (address !== null) listing.variants.push({ attributes: pending, codecs, url: address });
      pending = null;
    }
  }
  return listing;
}

type FormatPart = Omit<Format, "manifest_url" | "has_drm">;

/** Everything of a format that the variant and its group tell; `format_id` is still empty. */
function variantFormat(
  { attributes, codecs, url }: Variant,
  group: AudioGroup | undefined,
): FormatPart {
  const [, width, height] = /^(\d+)[x*](\d+)$/i.exec(attributes.get("RESOLUTION") ?? "") ?? [];
  const hasPictures = readPixels(width) !== null;
  const vcodec = codecs.vcodec === "none" && hasPictures ? null : codecs.vcodec;
  const isSoundApart = group !== undefined && group.included === undefined;
  return {
    ...blank,
    format_id: "",
    url: url.href,
    ext: vcodec === "none" ? "m4a" : "mp4",
    width: readPixels(width),
    height: readPixels(height),
    fps: framesPerSecond(attributes.get("FRAME-RATE")),
    vcodec,
    // Without CODECS a variant may have its sound inside even though it names a group.
    acodec: isSoundApart && vcodec !== "none" && attributes.has("CODECS") ? "none" : codecs.acodec,
    tbr: kilobits(attributes.get("BANDWIDTH")) ?? kilobits(attributes.get("AVERAGE-BANDWIDTH")),
    language: languageTag(group?.included?.attributes.get("LANGUAGE")),
  };
}

function renditionFormat({ attributes }: Rendition, url: URL, acodec: string | null): FormatPart {
  const name = ["hls-audio", attributes.get("GROUP-ID"), attributes.get("NAME")];
  return {
    ...blank,
    format_id: name.filter(Boolean).join("-"),
    url: url.href,
    ext: "m4a",
    vcodec: "none",
    acodec,
    tbr: kilobits(attributes.get("BANDWIDTH")),
    language: languageTag(attributes.get("LANGUAGE")),
  };
}

/** What is played unless someone chooses comes first (RFC 8216 §4.3.4.1). */
function choiceOf({ attributes }: Rendition): number {
  const isSet = (name: string) => attributes.get(name)?.toUpperCase() === "YES";
  return isSet("DEFAULT") ? 2 : isSet("AUTOSELECT") ? 1 : 0;
}

const blank = {
  protocol: "m3u8",
  mime_type: null,
  width: null,
  height: null,
  fps: null,
  filesize: null,
} as const;

/** By GROUP-ID. A variant's CODECS cover the renditions that it names (RFC 8216 §4.3.4.2). */
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

/** Playlists of WebVTT segments. */
function subtitlesOf({ renditions }: MultivariantPlaylist): Manifest["subtitles"] {
  const subtitles = createSubtitles();
  for (const { attributes, url } of renditions) {
    if (url === null || !isOfType(attributes, "SUBTITLES")) continue;
    const name = readLine(attributes.get("NAME"));
    subtitles.add(languageTag(attributes.get("LANGUAGE")), { url: url.href, ext: "vtt", name });
  }
  return subtitles.record();
}

function isOfType(attributes: Attributes, type: string): boolean {
  return attributes.get("TYPE")?.toUpperCase() === type;
}
