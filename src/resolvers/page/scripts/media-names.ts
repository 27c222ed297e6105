import { mediaExtension } from "../../../parsers/media-type.ts";

/** The extension of a usual media file, with what may follow it. */
const usualExtension = /\.(?:m(?:3u8|p(?:[d34]|ga)|4[av]|ov)|webm|flv|M(?:3U8|P4))(?:[?"'`&\\#%;>]|\/["'?])/y;

const quote = String.raw`(?:\\{0,3}["']|&quot;)`;
const assigned = String.raw`[:=]\s?${quote}`;
const fileType = String.raw`(?:mp[34]|webm|mpeg|aac|ogg)[\\;"'&]`;
const manifestName = String.raw`(?:hls|dash)(?:[-_]?(?:manifest|playlist|stream))?(?:[-_]?(?:url|src))?`;
const urlStart = String.raw`(?:https?:|\\{0,3}\/)`;
/** The start of an object, or of an array of objects, as JSON in base64. */
export const jsonInBase64 = String.raw`(?:eyJ|W3si)[\w+/]{30}`;
/** The start of an absolute URL in base64. */
export const urlInBase64 = String.raw`aHR0c(?:DovL|HM6Ly)[\w+/-]{10}`;
const base64 = `(?:${jsonInBase64}|${urlInBase64})`;

/**
 * What shows that a text may name a medium. Each pattern starts with punctuation and looks back at the name before it: punctuation
 * is rarer than letters, which saves a third of the time.
 */
export const mediaNames = new RegExp(
  [
    // The end of a file's name, with what may follow it.
    String.raw`\.${mediaExtension}(?:[?"'\x60&\\#%;>\s]|\/["'?]|$)`,
    // A manifest's media type.
    String.raw`(?:\/|%2F)(?:(?:x-|vnd\.apple\.)?mpegurl|dash\+xml)[?"'\x60&\\#%;>]`,
    // The media type of a file: `type: "video/mp4"`.
    String.raw`(?<=o\\{0,3})\/${fileType}`,
    // hls.js' `loadSource("/1")`.
    String.raw`\((?<=loadSource\()["']`,
    // An argument in base64, which may name a medium once it is decoded.
    String.raw`\(["']${base64}`,
    // A variable in base64, in a URL's query.
    `=${urlInBase64}`,
    // What is assigned to a variable, a property or an attribute:
    String.raw`${assigned}(?:${[
      // a text in base64;
      base64,
      // a word for manifests, as a type or a format: `format: "hls"`;
      String.raw`(?:hls|dash)[\\"'&]`,
      // a URL, if the name is such a word: `hlsUrl: "/1"`, `data-hls-url="/1"`;
      String.raw`${urlStart}(?<=${manifestName}${quote}?\s?${assigned}${urlStart})`,
      // a word for files, if the name is a type or a format: `type: "mp4"`.
      String.raw`${fileType}(?<=(?:type|format)${quote}?\s?${assigned}\w{3,4}.)`,
    ].join("|")})`,
  ].join("|"),
  "i",
);

/** More characters than a match of `mediaNames` has. */
const maxNameLength = 50;
/**
 * Characters, as encoded or decoded. A longer text is searched only for usual files that are stated, which takes a third
 * of the time.
 */
const maxSearchLength = 16 * 1024;
/** After more files that are not stated the search ends, and the text is read anyway. */
const maxUnstated = 100;
/** Of one search by `findNames`. */
const maxNames = 10_000;
/** How much text before and after a name counts as its context, UTF-16 code units. */
const reach = 300;
const encoded = new RegExp(`^.\\s?${quote}?${base64}`);
const assignedUrl = /[:=]\s?(?:\\{0,3}["'`]|&quot;)(?:https?:)?\\{0,3}\/[^*]/;

/** Whether a part of a page may name a medium. */
export function mayNameMedium(text: string): boolean {
  if (text.length <= maxSearchLength) return mediaNames.test(text);
  let unstated = 0;
  // Looking for dots, and then at the next letter, takes a third of the time of matching a pattern.
  for (let at = text.indexOf("."); at >= 0; at = text.indexOf(".", at + 1)) {
    if (!mayStartExtension(text.charCodeAt(at + 1))) continue;
    usualExtension.lastIndex = at;
    if (!usualExtension.test(text)) continue;
    if (isStated(text, at) || ++unstated > maxUnstated) return true;
  }
  return false;
}

/** Returns where the stated names in `text` end that may be of media; searches 10,000 at most. */
export function findNames(text: string): number[] {
  const names: number[] = [];
  for (const { 0: name, index } of text.matchAll(new RegExp(mediaNames, "gi")).take(maxNames)) {
    if (isStated(text, index)) names.push(index + name.length - 1);
  }
  return names;
}

function mayStartExtension(code: number): boolean {
  return code === 109 || code === 77 || code === 119 || code === 102; // m, M, w, f
}

/**
 * Whether the name at `at` is stated: the text around it is neither concatenated nor compared. A media type, or a word such
 * as `hls`, also needs a URL within 300 characters, because scripts list types without naming a medium.
 */
function isStated(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - reach), at);
  if (/(?:[+!=]=|\+)\s{0,9}["'`][^"'`]*$/.test(before)) return false;
  if (/["'`]\s?[!=]=/.test(text.slice(at + 1, at + 12))) return false;
  const isFileOrCall = text[at] === "." || text[at] === "(";
  if (isFileOrCall || encoded.test(text.slice(at, at + maxNameLength))) return true;
  return assignedUrl.test(before + text.slice(at, at + reach));
}
