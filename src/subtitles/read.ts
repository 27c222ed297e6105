import type { Cue } from "../remux/additions.ts";
import { readAss } from "./ass.ts";
import { readLrc } from "./lrc.ts";
import { decodePieces, invalidSubtitlesError } from "./text.ts";
import { readSubRip, readWebVtt, type TimestampMap } from "./timed-text.ts";
import { readTtml } from "./ttml.ts";

export interface ReadSubtitles {
  /** In the order of the file. */
  cues: Cue[];
  /** Of WebVTT in a segment of HLS; `null`: it has none. */
  map: TimestampMap | null;
}

/**
 * Reads a file or segment of WebVTT, TTML, SubRip, SubStation Alpha or LRC: which one it is, its content tells.
 *
 * @param language Of the text (BCP 47), if it is known: text that is not UTF-8 is in the encoding that was usual for it.
 * @throws ServiceError `upstream_invalid` if it is none of them, or breaks a limit.
 */
export function readSubtitles(bytes: Uint8Array, language: string | null = null): ReadSubtitles {
  const text = () => decodePieces(bytes, language);
  const start = text().next().value?.slice(0, 4096) ?? "";
  if (/^WEBVTT(?:[ \t\r\n]|$)/.test(start)) return readWebVtt(text());
  if (/^\s*<(?:\?xml|!--|!doctype[ \t]+(?:[a-z]+:)?tt[\s[>]|(?:[a-z]+:)?tt[\s>])/i.test(start)) {
    if (!/<(?:[a-z]+:)?tt[\s>]/i.test(start)) throw invalidSubtitlesError("they are XML, but not TTML");
    return { cues: readTtml(text()), map: null };
  }
  if (/^\s*\[script info\]/i.test(start)) return { cues: readAss(text()), map: null };
  for (const read of [readSubRip, readLrc]) {
    const cues = read(text());
    if (cues.length > 0) return { cues, map: null };
  }
  throw invalidSubtitlesError("they are neither WebVTT nor TTML, SubRip, SubStation Alpha or LRC");
}
