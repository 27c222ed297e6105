import { posix } from "node:path";
import { checkLength, invalidManifestError } from "../manifest.ts";

/**
 * @throws ServiceError `upstream_invalid` unless `text` begins as a playlist and has at most 4 Mi characters; and for an M3U, a list
 * of media, which may begin so too, but has none of the tags that a playlist of segments must have (RFC 8216 §4.3.3.1).
 * @param isVariant A multivariant playlist lists it, so that it is no list of media.
 */
export function checkPlaylist(text: string, url: URL, isVariant = false): void {
  checkLength(text, url);
  const hasHeader = /^\s*#EXTM3U/i.test(text);
  const isBare = !isVariant && /^[ \t]*#EXTINF:/im.test(text) && !/^[ \t]*#EXT-X-/im.test(text);
  if (hasHeader ? isBare : /^\s*https?:\/\//i.test(text)) {
    throw invalidManifestError(url, "it is a list of media (M3U) without any tag of HLS: take the URL of one of them");
  }
  if (!hasHeader) throw invalidManifestError(url, "an HLS playlist must begin with #EXTM3U (RFC 8216 §4.3.1.1)");
}

const multivariantTag = /^[ \t]*#EXT-X-(?:STREAM-INF|I-FRAME-STREAM-INF|MEDIA|SESSION-KEY):/im;

/** Whether it is a multivariant playlist (RFC 8216 §4.3.4), which lists other playlists. */
export function isMultivariant(text: string): boolean {
  return multivariantTag.test(text);
}

/** One line of a playlist: a tag with the text after its colon, or (`tag: null`) a URI. */
export interface PlaylistLine {
  /** Upper case, with the `#`. */
  tag: string | null;
  value: string;
}

const maxLineLength = 65_536;

/**
 * Yields the lines of a playlist (RFC 8216 §4.1), each cut to 64 Ki characters, without blanks and comments. If the text has no LF
 * but at its end, lines end with CR, as some editors write them.
 */
export function* readLines(text: string): Generator<PlaylistLine> {
  const newline = text.trimEnd().includes("\n") ? "\n" : "\r";
  for (let start = 0; start < text.length;) {
    const at = text.indexOf(newline, start);
    const end = at === -1 ? text.length : at;
    const line = text.slice(start, Math.min(end, start + maxLineLength)).trim();
    start = end + 1;
    if (line === "") continue;
    if (!line.startsWith("#")) {
      yield { tag: null, value: line };
      continue;
    }
    const colon = line.indexOf(":");
    const tag = (colon === -1 ? line : line.slice(0, colon)).toUpperCase();
    if (tag.startsWith("#EXT")) yield { tag, value: colon === -1 ? "" : line.slice(colon + 1) };
  }
}

/** Tags that say something about the next URI only. */
const segmentTags = new Set(["#EXTINF", "#EXT-X-BYTERANGE", "#EXT-X-GAP", "#EXT-X-PROGRAM-DATE-TIME"]);

/**
 * Yields the lines of a media playlist. If others have EXTINF, which each segment must have (RFC 8216 §4.3.2.1), a line without it is a
 * comment (tag `#`): servers add such lines, and players ignore them. One with another tag of its own, or with the extension of the
 * others, stays a segment, as it would be missing without a warning.
 */
export function* readMediaLines(text: string): Generator<PlaylistLine> {
  const isSegment = createSegmentTest(text);
  for (const line of readLines(text)) {
    const { tag, value } = line;
    yield isSegment(line) || tag !== null ? line : { tag: "#", value };
  }
}

/** Returns a function that takes the lines of a media playlist in order, and returns whether each is a segment; see `readMediaLines`. */
export function createSegmentTest(text: string): (line: PlaylistLine) => boolean {
  const extension = timedExtension(text);
  let isTagged = false;
  return ({ tag, value }) => {
    const isSegment = extension === null || isTagged || (extension !== "" && extensionOf(value) === extension);
    isTagged = tag !== null && (isTagged || segmentTags.has(tag));
    return tag === null && isSegment;
  };
}

/** Returns the extension of the first URI with EXTINF, as `extensionOf`; `null`: none has it. */
function timedExtension(text: string): string | null {
  let isTimed = false;
  for (const { tag, value } of readLines(text)) {
    if (tag === null && isTimed) return extensionOf(value);
    isTimed ||= tag === "#EXTINF";
  }
  return null;
}

/** Returns `.ts` for `a/1.ts?b=2`, `""` without extension. */
function extensionOf(uri: string): string {
  return posix.extname(uri.split("?", 1)[0] ?? "");
}

/** The values of an attribute list by upper-case name. */
export type Attributes = ReadonlyMap<string, string>;

/**
 * Parses an attribute list (RFC 8216 §4.2); the first of a repeated name counts. Tolerates white space and
 * unclosed or missing quotes: `CODECS=a,b` is one value.
 */
export function readAttributes(list: string): Attributes {
  const attributes = new Map<string, string>();
  const next = /([^=,]*)(?:=\s*(?:"([^"]*)"?|([^,]*)))?,?/y;
  let unquoted: string | null = null;
  while (next.lastIndex < list.length) {
    const [, rawName = "", quoted, bare] = next.exec(list) ?? [];
    const name = rawName.trim().toUpperCase();
    const isValue = quoted !== undefined || bare !== undefined;
    if (isValue && name !== "" && !attributes.has(name)) {
      attributes.set(name, (quoted ?? bare ?? "").trim());
      unquoted = quoted === undefined ? name : null;
    } else if (!isValue && name !== "" && unquoted !== null) {
      attributes.set(unquoted, `${attributes.get(unquoted)},${rawName.trim()}`);
    }
  }
  return attributes;
}

const maxVariables = 1_000;
const maxValueLength = 8_192;
const maxSubstituted = 1_048_576;
const costPerSubstitution = 100;

/**
 * Creates the variables of the playlist at `url` (RFC 8216bis §4.4.2.3); QUERYPARAM reads the URL's query, IMPORT takes
 * those of the multivariant playlist.
 * Substitutes at most about 1 MiB in at most 10,000 places, so that nested variables stay bounded; an
 * undefined reference, or one beyond the limit, stays as written.
 */
export function createVariables(url: URL, imported: Variables = new Map()) {
  const values = new Map<string, string>();
  let budget = maxSubstituted;

  /** Replaces each `{$name}` that is defined by its value. */
  function substitute(text: string): string {
    if (budget <= 0 || !text.includes("{$")) return text;
    return text.replaceAll(/\{\$([\w-]+)\}/g, (reference, name: string) => {
      const value = values.get(name);
      if (value === undefined || budget <= 0) return reference;
      budget -= value.length + costPerSubstitution;
      return value;
    });
  }

  /** Applies the attribute list of an EXT-X-DEFINE; the first definition of a name counts. */
  function define(list: string): void {
    const attributes = readAttributes(list);
    const [parameter, source] = [attributes.get("QUERYPARAM"), attributes.get("IMPORT")];
    const name = attributes.get("NAME") ?? parameter ?? source;
    const given = parameter === undefined ? attributes.get("VALUE") : url.searchParams.get(parameter);
    const value = source === undefined ? given : imported.get(source);
    if (name === undefined || value === undefined || value === null) return;
    if (values.has(name) || values.size >= maxVariables) return;
    values.set(name, source === undefined ? substitute(value).slice(0, maxValueLength) : value);
  }

  return { define, substitute, values };
}

/** The values of variables by name. */
export type Variables = ReadonlyMap<string, string>;

/** Whether a playlist uses variables of its multivariant playlist. */
export function importsVariables(text: string): boolean {
  return /^[ \t]*#EXT-X-DEFINE:.*\bIMPORT\s*=/im.test(text);
}

/** Returns the variables that the multivariant playlist `text` from `url` defines. */
export function readVariables(text: string, url: URL): Variables {
  const { define, values } = createVariables(url);
  for (const { tag, value } of readLines(text)) if (tag === "#EXT-X-DEFINE") define(value);
  return values;
}
