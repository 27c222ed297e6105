import { isUtf8 } from "node:buffer";
import { ServiceError } from "../model/errors.ts";

/** Longest subtitles that are read, bytes. */
export const maxSubtitleBytes = 32 << 20;

/** The end of what lasts as long as the media do, seconds: two digits of hours. */
export const lastS = 359_999.999;

/** Cues that a track may have. */
export const maxCues = 200_000;

/** Yields the same. @throws ServiceError `upstream_invalid` for more than 200,000. */
export function* atMostMaxCues<T>(cues: Iterable<T>): Generator<T> {
  let count = 0;
  for (const cue of cues) {
    if (++count > maxCues) throw invalidSubtitlesError(`they have more than ${maxCues} cues`);
    yield cue;
  }
}

/** No screen has so much. */
const maxCueLength = 2 << 20;

/** @throws ServiceError `upstream_invalid` for more than 2 Mi characters. */
export function checkCueLength(length: number): void {
  if (length > maxCueLength) throw invalidSubtitlesError(`a cue has over ${maxCueLength} characters`);
}

/** Returns an error for subtitles that cannot be read. */
export function invalidSubtitlesError(rule: string): ServiceError {
  return new ServiceError("upstream_invalid", `the subtitles cannot be read: ${rule}`);
}

/**
 * Decodes subtitles: by their byte order mark, else as UTF-16 if every other byte of the start is zero, else as UTF-8. If they
 * are no UTF-8, in the encoding that they state as XML, or that was usual for their language (BCP 47), or as Windows-1252.
 */
export function decodeSubtitles(bytes: Uint8Array, language: string | null = null): string {
  return [...decodePieces(bytes, language)].join("");
}

const firstBytes = 256 * 1024;
/** Short strings are freed early: V8 keeps long ones apart from the young generation. */
const pieceBytes = 32 * 1024;

/** Yields what `decodeSubtitles` returns in pieces, without a byte order mark; the first has the first 64 Ki characters. */
export function* decodePieces(bytes: Uint8Array, language: string | null = null): Generator<string> {
  const decoder = new TextDecoder(encodingOfBytes(bytes, language));
  for (let at = 0, end = firstBytes; at < bytes.length; at = end, end += pieceBytes) {
    const piece = decoder.decode(bytes.subarray(at, end), { stream: end < bytes.length });
    yield withoutZeros(at === 0 ? piece.replace(/^\u{FEFF}/u, "") : piece);
  }
}

function encodingOfBytes(bytes: Uint8Array, language: string | null): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  const start = bytes.subarray(0, 64);
  const isZero = (parity: number) => start.length >= 8 && start.every((byte, i) => i % 2 !== parity || byte === 0);
  if (isZero(1)) return "utf-16le";
  if (isZero(0)) return "utf-16be";
  if (isUtf8(bytes)) return "utf-8";
  return statedEncoding(Buffer.from(bytes.subarray(0, 256)).toString("latin1")) ?? encodingOf(language);
}

/** Players end a text at a zero (W3C WebVTT §4.1 replaces them, too). */
const withoutZeros = (text: string): string => text.replaceAll("\0", "\uFFFD");

/**
 * Yields the lines of a text that comes in pieces; CR, LF and CRLF end one.
 *
 * @throws ServiceError `upstream_invalid` for a line of more than 2 Mi characters.
 */
export function* linesOf(pieces: Iterable<string>): Generator<string> {
  let held = "";
  for (const piece of pieces) {
    const text = held + piece;
    let at = 0;
    for (const end of text.matchAll(/\r\n?|\n/g)) {
      // An LF may follow.
      if (end[0] === "\r" && end.index === text.length - 1) break;
      yield text.slice(at, end.index);
      at = end.index + end[0].length;
    }
    held = text.slice(at);
    checkCueLength(held.length);
  }
  if (held !== "") yield held.endsWith("\r") ? held.slice(0, -1) : held;
}

/** Escapes plain text for a WebVTT cue payload. */
export function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Encodings of text from before UTF-8, each with the languages it was usual for (WHATWG Encoding; HTML §13.2.3.2). */
const encodings: readonly (readonly [encoding: string, languages: string])[] = [
  ["windows-1250", "bs cs hr hu pl ro sk sl sq"],
  ["windows-1251", "be bg kk ky mk mn ru sr tg uk"],
  ["windows-1253", "el"],
  ["windows-1254", "az ku tr"],
  ["windows-1255", "he iw yi"],
  ["windows-1256", "ar fa ur"],
  ["windows-1257", "et lt lv"],
  ["windows-1258", "vi"],
  ["windows-874", "th"],
  ["shift_jis", "ja"],
  ["euc-kr", "ko"],
  ["gb18030", "zh"],
];
const byLanguage = new Map(encodings.flatMap(([name, tags]) => tags.split(" ").map((tag) => [tag, name] as const)));

/** Of Chinese as it is written in Hong Kong, Macao and Taiwan. */
const traditional = /^zh-(?:hant|hk|mo|tw)\b/;

/** Returns the encoding of text in a language (BCP 47) that is not UTF-8: Windows-1252 if that is unknown. */
function encodingOf(language: string | null): string {
  const tag = language?.toLowerCase() ?? "";
  if (traditional.test(tag)) return "big5";
  return byLanguage.get(tag.split("-", 1)[0]!) ?? "windows-1252";
}

/** Returns the encoding that an XML declaration states (XML 1.0 §4.3.3); undefined: there is none, or it is unknown, or Unicode. */
function statedEncoding(start: string): string | undefined {
  const label = /^\s*<\?xml\s[^>]{0,200}?\bencoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(start)?.[1];
  if (label === undefined) return undefined;
  try {
    const { encoding } = new TextDecoder(label);
    return encoding.startsWith("utf-") ? undefined : encoding;
  } catch {
    return undefined;
  }
}
