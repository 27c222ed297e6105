import { isUtf8 } from "node:buffer";
import { decodeManifest } from "../../../manifests/text.ts";
import { mediaTypeOf } from "../../../parsers/media-type.ts";
import { parseDuration } from "../../../parsers/quantities.ts";
import { parseLine } from "../../../parsers/text.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import type { MediaList } from "./feed.ts";
import { SliceBuilder } from "../../entries.ts";

const logo = 'tvg-logo="';
const maxLineLength = 16 * 1024;

/** Whether a playlist is one of HLS, whose media are segments: it has tags of its own (RFC 8216 §4.1). */
export function isHls(body: readonly Uint8Array[]): boolean {
  const bytes = Buffer.concat(body);
  const tag = "#EXT-X-";
  // Without the last zero, the text in UTF-16 is the same in either byte order.
  return bytes.indexOf(tag) >= 0 || bytes.indexOf(Buffer.from(tag, "utf16le").subarray(0, -1)) >= 0;
}

/** Returns the text of an M3U or PLS, as that of a manifest; a line that is no UTF-8 is Windows-1252, as old players write both. */
export function decodeList(body: Uint8Array): string {
  const isUtf16 = body.includes(0);
  if (isUtf16 || isUtf8(body)) return decodeManifest(body);
  const windows = new TextDecoder("windows-1252");
  const decodeLine = (line: string): string => {
    if (!/[\x80-\xff]/.test(line)) return line;
    const bytes = Buffer.from(line, "latin1");
    return isUtf8(bytes) ? bytes.toString() : windows.decode(bytes);
  };
  return Buffer.from(body).toString("latin1").split("\n").map(decodeLine).join("\n");
}

/**
 * Reads an M3U of several media, one a line, with the titles, durations and pictures of extended M3U; `start`: entries before
 * those that are wanted. Lines that are no URL over http or https are left out, without any tag also paths without an extension that is
 * known: a message has lines, too. Returns null if it lists nothing.
 */
export function readM3u(text: string, url: URL, start: number): MediaList | null {
  const entries = new SliceBuilder(start);
  let title: string | null = null;
  let stated = { title: null as string | null, duration: null as number | null, thumbnail: null as string | null };
  const unstated = stated;
  const isExtended = text.includes("#EXT");
  const isMedium = (line: string, medium: URL) =>
    isExtended || URL.canParse(line) || mediaTypeOf(null, medium).kind !== "unknown";
  const newline = text.includes("\n") ? "\n" : "\r";
  for (let at = 0; at < text.length;) {
    const end = text.indexOf(newline, at);
    const line = text.slice(at, end < 0 ? text.length : end).trim();
    at = end < 0 ? text.length : end + 1;
    if (line === "" || line.length > maxLineLength) continue;
    if (/^#EXTINF:/i.test(line)) stated = readExtInf(line, url);
    else if (/^#PLAYLIST:/i.test(line)) title ??= parseLine(line.slice("#PLAYLIST:".length));
    if (line.startsWith("#")) continue;
    const medium = tryParseUrl(line, url);
    const described = stated;
    stated = unstated;
    if (medium !== null && isMedium(line, medium))
      entries.add(() => ({ url: medium.href, ...described, uploaded_at: null }));
  }
  return entries.count === 0 ? null : { metadata: { title }, slice: entries.build() };
}

/** Reads `#EXTINF:SECONDS NAME="VALUE" …,TITLE`. */
function readExtInf(line: string, url: URL) {
  const comma = findComma(line);
  const attributes = line.slice("#EXTINF:".length, comma);
  const logoAt = attributes.indexOf(logo);
  const picture = logoAt < 0 ? null : attributes.slice(logoAt + logo.length).split('"', 1)[0];
  return {
    title: parseLine(line.slice(comma + 1)),
    duration: parseDuration(attributes.trim().split(/\s/, 1)[0]),
    thumbnail: tryParseUrl(picture, url)?.href ?? null,
  };
}

/** Returns where the first comma outside of quotes is; the end of the line without one. */
function findComma(line: string): number {
  let isQuoted = false;
  for (let at = 0; at < line.length; at += 1) {
    if (line[at] === '"') isQuoted = !isQuoted;
    if (line[at] === "," && !isQuoted) return at;
  }
  return line.length;
}

const plsLine = /^[ \t]*(file|title|length)(\d{1,5})[ \t]*=([^\r\n]{0,16384})/gim;

/**
 * Reads a PLS, the list of URLs that radio stations publish: `File1=URL`, `Title1=…`, `Length1=SECONDS`, by their numbers, below 100,000; `start`:
 * entries before those that are wanted. What is no URL over http or https is left out. Returns null if it lists nothing.
 */
export function readPls(text: string, url: URL, start: number): MediaList | null {
  const stated = new Map<number, Partial<Record<string, string>>>();
  for (const [, name = "", digits, value = ""] of text.matchAll(plsLine)) {
    const number = Number(digits);
    const entry = stated.get(number) ?? {};
    stated.set(number, { [name.toLowerCase()]: value.trim(), ...entry });
  }
  const entries = new SliceBuilder(start);
  for (const [, { file, title, length }] of [...stated].toSorted(([a], [b]) => a - b)) {
    const medium = tryParseUrl(file, url);
    if (medium === null) continue;
    entries.add(() => ({
      url: medium.href,
      title: parseLine(title),
      duration: parseDuration(length),
      thumbnail: null,
      uploaded_at: null,
    }));
  }
  return entries.count === 0 ? null : { metadata: {}, slice: entries.build() };
}
