import type { Cue } from "../remux/additions.ts";
import { readAss } from "./ass.ts";
import { readLrc } from "./lrc.ts";
import { atMostMaxCues, decodePieces, invalidSubtitlesError } from "./text.ts";
import { readSubRip, readWebVtt, type TimestampMap } from "./timed-text.ts";
import { readTtml } from "./ttml/ttml.ts";

interface ReadSubtitles {
  /** In the order of the file. */
  cues: Cue[];
  /** Of WebVTT in a segment of HLS; `null`: it has none. */
  map: TimestampMap | null;
}

/** Reads a segment as `readCues` does a file. */
export function readSubtitles(bytes: Uint8Array, language: string | null = null): ReadSubtitles {
  let map: TimestampMap | null = null;
  const cues = readCues(bytes, language, (found) => (map = found)).toArray();
  return { cues, map };
}

/**
 * Yields the cues of a file of WebVTT, TTML, SubRip, SubStation Alpha or LRC, in its order; its content shows which one it is.
 *
 * @param language Of the text (BCP 47), if it is known: text that is not UTF-8 is in the encoding that was usual for it.
 * @param onMap Gets the timestamp map of WebVTT.
 * @throws ServiceError `upstream_invalid` if it is none of them, breaks a limit, or has more than 200,000 cues.
 */
export function readCues(
  bytes: Uint8Array,
  language: string | null,
  onMap: (map: TimestampMap) => void = () => {},
): Generator<Cue> {
  return atMostMaxCues(cuesOf(() => decodePieces(bytes, language), onMap));
}

function cuesOf(text: () => Generator<string>, onMap: (map: TimestampMap) => void): Iterable<Cue> {
  const start = text().next().value?.slice(0, 4096) ?? "";
  if (/^WEBVTT(?:[ \t\r\n]|$)/.test(start)) return readWebVtt(text(), onMap);
  if (/^\s*<(?:\?xml|!--|!doctype[ \t]+(?:[a-z]+:)?tt[\s[>]|(?:[a-z]+:)?tt[\s>])/i.test(start)) {
    if (!/<(?:[a-z]+:)?tt[\s>]/i.test(start)) throw invalidSubtitlesError("they are XML, but not TTML");
    return readTtml(text());
  }
  if (/^\s*\[script info\]/i.test(start)) return readAss(text());
  return firstWithCues([readSubRip, readLrc], text);
}

function* firstWithCues(
  formats: readonly ((pieces: Iterable<string>) => Iterable<Cue>)[],
  text: () => Generator<string>,
): Generator<Cue> {
  for (const read of formats) {
    let hasCues = false;
    for (const cue of read(text())) {
      hasCues = true;
      yield cue;
    }
    if (hasCues) return;
  }
  throw invalidSubtitlesError("they are neither WebVTT nor TTML, SubRip, SubStation Alpha or LRC");
}
