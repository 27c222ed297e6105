import { tryParseUrl } from "../../parsers/url.ts";
import { parseLine } from "../../parsers/text.ts";
import { splitCodecs } from "../attributes.ts";
import {
  type Attributes,
  checkPlaylist,
  type PlaylistLine,
  createVariables,
  readAttributes,
  readLines,
  isMultivariant,
} from "./lines.ts";
import { listHlsFormats } from "./formats.ts";
import { isOfType, type Rendition, renditionOf } from "./groups.ts";
import { readMediaPlaylist } from "./media.ts";
import { createLicenceCheck } from "./key.ts";
import type { Variant } from "./variants.ts";
import { hlsSubtitleRole, withAudioRoles } from "../tracks.ts";
import { type Manifest, cutOffError, maxFormats, createSubtitles } from "../manifest.ts";

/**
 * Lists the formats and subtitles of an HLS playlist (RFC 8216, 8216bis) fetched from `url`, in time linear
 * in its length.
 *
 * In a multivariant playlist each variant is a format, with the default rendition of its VIDEO group; then come the other
 * renditions of these groups, and the audio renditions that have a URL, those of the best variant's group first, in a group
 * the default one first. I-frame playlists are not formats. `tbr` is
 * BANDWIDTH (the peak), or AVERAGE-BANDWIDTH if that is missing; `averageTbr` is AVERAGE-BANDWIDTH, or estimated from
 * BANDWIDTH. A media playlist is one format. URLs that are not http(s) are left out.
 *
 * @throws ServiceError `upstream_invalid` unless `text` begins with #EXTM3U (after optional white space and
 * byte order mark) and has at most 4 Mi characters; `upstream_unreachable` if it is cut off before its first variant, or within one.
 */
export function readHls(text: string, url: URL): Manifest {
  checkPlaylist(text, url);
  return isMultivariant(text) ? readMultivariant(text, url) : readMediaPlaylist(text, url);
}

interface MultivariantPlaylist {
  variants: Variant[];
  renditions: Rendition[];
  has_drm: boolean;
  /** Where the last line is. */
  end: "before any" | "within a variant" | "after one";
}

function readMultivariant(text: string, url: URL): Manifest {
  const playlist = parseMultivariant(text, url);
  // Renditions belong to variants (RFC 8216 §4.3.4.2.1), which may be listed after them; each line has an end.
  const isCut = playlist.end === "within a variant" || (playlist.end === "before any" && text.trimEnd() === text);
  if (isCut) throw cutOffError(url, "it ends before the URL of a variant");
  const listed = listHlsFormats(playlist, { manifest_url: url.href, has_drm: playlist.has_drm });
  const formats = withAudioRoles(listed);
  return { formats, subtitles: subtitlesOf(playlist), duration: null, live_status: null };
}

/** Reads the variants and renditions of a multivariant playlist: first those of the pathway that its content steering names. */
function parseMultivariant(text: string, url: URL): MultivariantPlaylist {
  const playlist: MultivariantPlaylist = { variants: [], renditions: [], has_drm: false, end: "before any" };
  const variables = createVariables(url);
  const keys = createLicenceCheck();
  let pending: Attributes | null = null;
  let pathway: string | undefined;
  let seen = 0;
  for (const line of readLines(text)) {
    if (seen >= 2 * maxFormats || playlist.variants.length >= maxFormats) break;
    readLine(line);
  }
  return { ...playlist, variants: startWith(pathway, playlist.variants) };

  function readLine({ tag, value }: PlaylistLine): void {
    if (tag === "#EXT-X-DEFINE") variables.define(value);
    else if (tag === "#EXT-X-STREAM-INF") {
      pending = readAttributes(variables.substitute(value));
      playlist.end = "within a variant";
    } else if (tag === "#EXT-X-MEDIA") {
      seen += 1;
      const attributes = readAttributes(variables.substitute(value));
      playlist.renditions.push(renditionOf(attributes, tryParseUrl(attributes.get("URI"), url)));
    } else if (tag === "#EXT-X-SESSION-KEY" || tag === "#EXT-X-KEY") {
      keys.set(readAttributes(variables.substitute(value)));
      playlist.has_drm = keys.format !== undefined;
    } else if (tag === "#EXT-X-CONTENT-STEERING") {
      pathway = readAttributes(variables.substitute(value)).get("PATHWAY-ID");
    } else if (tag === null && pending !== null) {
      seen += 1;
      const variantUrl = tryParseUrl(variables.substitute(value), url);
      const codecs = splitCodecs(pending.get("CODECS"));
      if (variantUrl !== null) playlist.variants.push({ attributes: pending, codecs, url: variantUrl });
      pending = null;
      playlist.end = "after one";
    }
  }
}

/** A variant that names no pathway is of `.` (8216bis §4.4.6.2); without content steering, the order is that of the playlist. */
function startWith(pathway: string | undefined, variants: readonly Variant[]): Variant[] {
  const isOther = ({ attributes }: Variant) => Number((attributes.get("PATHWAY-ID") ?? ".") !== pathway);
  return pathway === undefined ? [...variants] : variants.toSorted((a, b) => isOther(a) - isOther(b));
}

/** Subtitle renditions are playlists, whatever their segments are. */
function subtitlesOf({ renditions }: MultivariantPlaylist): Manifest["subtitles"] {
  const subtitles = createSubtitles();
  for (const { attributes, language, url } of renditions) {
    if (url === null || !isOfType(attributes, "SUBTITLES")) continue;
    const name = parseLine(attributes.get("NAME"));
    subtitles.add(language, { url: url.href, ext: "m3u8", name, role: hlsSubtitleRole(attributes) });
  }
  return subtitles.record();
}

/**
 * Returns the URLs of what is redundant to the variant or rendition at `media`, in the order of the multivariant playlist `text`
 * from `url`; none if it is another text. Redundant are variants that differ only in their pathway and in the names of their
 * groups (RFC 8216 §6.2.4, 8216bis §4.4.6.2), and renditions with the same attributes in the groups of such variants.
 */
export function findRedundant(text: string, url: URL, media: URL): URL[] {
  if (!isMultivariant(text)) return [];
  const { variants, renditions } = parseMultivariant(text, url);
  const keyed = variants.map((variant) => ({ ...variant, key: keyOf(variant.attributes) }));
  const own = keyed.find((variant) => variant.url.href === media.href);
  const ownRendition = renditions.find((rendition) => rendition.url?.href === media.href);
  const found = own ? keyed.filter(({ key }) => key === own.key).map((variant) => variant.url) : [];
  if (ownRendition !== undefined) {
    const group = ownRendition.attributes.get("GROUP-ID") ?? "";
    const users = new Set(keyed.filter(({ attributes }) => groupsOf(attributes).includes(group)).map(({ key }) => key));
    const groups = new Set(keyed.filter(({ key }) => users.has(key)).flatMap(({ attributes }) => groupsOf(attributes)));
    const ownKey = keyOf(ownRendition.attributes);
    for (const rendition of renditions) {
      const isRedundant =
        groups.has(rendition.attributes.get("GROUP-ID") ?? "") && keyOf(rendition.attributes) === ownKey;
      if (isRedundant && rendition.url !== null) found.push(rendition.url);
    }
  }
  const others = new Map(found.map((other) => [other.href, other]));
  others.delete(media.href);
  return [...others.values()];
}

const groupNames = ["AUDIO", "VIDEO", "SUBTITLES"];

/** Attributes that say where something is, not what it is. */
const placeNames: ReadonlySet<string> = new Set([...groupNames, "CLOSED-CAPTIONS", "GROUP-ID", "PATHWAY-ID", "URI"]);

function keyOf(attributes: Attributes): string {
  return JSON.stringify(
    [...attributes].filter(([name]) => !placeNames.has(name)).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
}

function groupsOf(attributes: Attributes): string[] {
  return groupNames.flatMap((name) => attributes.get(name) ?? []);
}
