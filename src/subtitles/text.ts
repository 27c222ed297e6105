import { ServiceError } from "../model/errors.ts";
import { encodingOf, statedEncoding } from "./encodings.ts";

/** Longest subtitles that are read, bytes. */
export const maxSubtitleBytes = 32 << 20;

/** Cues that a track may have. */
export const maxCues = 200_000;

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
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return decode(bytes, "utf-16le");
  if (first === 0xfe && second === 0xff) return decode(bytes, "utf-16be");
  const start = bytes.subarray(0, 64);
  const isZero = (parity: number) => start.length >= 8 && start.every((byte, i) => i % 2 !== parity || byte === 0);
  if (isZero(1)) return decode(bytes, "utf-16le");
  if (isZero(0)) return decode(bytes, "utf-16be");
  try {
    return withoutZeros(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    const stated = statedEncoding(Buffer.from(bytes.subarray(0, 256)).toString("latin1"));
    return decode(bytes, stated ?? encodingOf(language));
  }
}

const decode = (bytes: Uint8Array, encoding: string): string => withoutZeros(new TextDecoder(encoding).decode(bytes));

/** Players end a text at a zero (W3C WebVTT §4.1 replaces them, too). */
const withoutZeros = (text: string): string => text.replaceAll("\0", "\uFFFD");

/** Yields the lines of a text; CR, LF and CRLF end one. */
export function* linesOf(text: string): Generator<string> {
  const ends = /\r\n?|\n/g;
  let at = 0;
  for (const end of text.matchAll(ends)) {
    yield text.slice(at, end.index);
    at = end.index + end[0].length;
  }
  if (at < text.length) yield text.slice(at);
}

/** Escapes plain text for a WebVTT cue payload. */
export function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
