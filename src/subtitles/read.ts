import type { Cue } from "../remux/additions.ts";
import { readAss } from "./ass.ts";
import {
  atMostMaxCues,
  decodePieces,
  invalidSubtitlesError,
  escapeText,
  lastS,
  linesOf,
  maxCues,
  decodeSubtitles,
} from "./text.ts";
import { readSubRip, readWebVtt, type TimestampMap } from "./timed-text.ts";
import { readTtml } from "./ttml/ttml.ts";
import type { StatedChapter } from "../model/entry.ts";
import { readCueText } from "../remux/cue-text.ts";

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

const stamp = /\s{0,9}\[(\d{1,3}):(\d{1,2}(?:[.:]\d{1,3})?)\]/y;
const offset = /^\s{0,9}\[offset:\s{0,9}([+-]?\d{1,7})\s{0,9}\]/i;
/** How much longer a text may become by lines that are shown several times, characters: no song has so much. */
const maxRepeated = 2 << 20;
const wordTime = /<\d{1,3}:\d{1,2}(?:[.:]\d{1,3})?>/g;

/**
 * Reads lyrics in LRC: each line, which may have several times, is shown until the next one; an empty one ends the line before. The last
 * one lasts as long as the media. Times of words are left out. Other text has no cues.
 *
 * @throws ServiceError `upstream_invalid` for more than 200,000 cues, or if lines with several times repeat more than 2 Mi characters.
 */
function readLrc(pieces: Iterable<string>): Cue[] {
  const found: { startS: number; text: string }[] = [];
  let [soonerS, repeated] = [0, 0];
  for (const line of linesOf(pieces)) {
    const stated = offset.exec(line)?.[1];
    if (stated !== undefined) soonerS = Number(stated) / 1000;
    const starts: number[] = [];
    stamp.lastIndex = 0;
    let textAt = 0;
    for (let time = stamp.exec(line); time !== null; time = stamp.exec(line)) {
      starts.push(Number(time[1]) * 60 + Number(time[2]?.replace(":", ".")));
      textAt = stamp.lastIndex;
    }
    if (found.length + starts.length > maxCues) throw invalidSubtitlesError(`they have more than ${maxCues} cues`);
    const text = starts.length === 0 ? "" : escapeText(line.slice(textAt).replaceAll(wordTime, "")).trim();
    repeated += text.length * Math.max(0, starts.length - 1);
    if (repeated > maxRepeated) throw invalidSubtitlesError(`they repeat over ${maxRepeated} characters`);
    for (const startS of starts) found.push({ startS, text });
  }
  const cues: Cue[] = [];
  let [endS, nextS] = [lastS, lastS];
  for (const { startS, text } of found.toSorted((a, b) => a.startS - b.startS).toReversed()) {
    if (startS < nextS) [endS, nextS] = [nextS, startS];
    if (text !== "") cues.push({ startS: startS - soonerS, endS: endS - soonerS, text, settings: "" });
  }
  return cues.toReversed();
}

/**
 * Reads chapters in WebVTT (W3C WebVTT §1.5), where each cue is one and its text the title, or in the JSON of podcasts
 * (https://podcasting2.org/docs/podcast-namespace/tags/chapters), without those that its table of contents leaves out.
 *
 * @throws ServiceError as `readSubtitles`
 */
export function readChapters(bytes: Uint8Array): StatedChapter[] {
  const listed = readJson(bytes);
  if (listed !== undefined) return listed.flatMap(readJsonChapter);
  return readSubtitles(bytes).cues.map(({ startS, endS, text }) => {
    return { start: startS, end: endS, title: readCueText(text).text };
  });
}

/** Returns its list of chapters; undefined if it is something else. */
function readJson(bytes: Uint8Array): unknown[] | undefined {
  const text = decodeSubtitles(bytes).trimStart();
  if (!text.startsWith("{")) return undefined;
  try {
    const { chapters } = JSON.parse(text) as { chapters?: unknown };
    return Array.isArray(chapters) ? chapters : undefined;
  } catch {
    return undefined;
  }
}

function readJsonChapter(stated: unknown): StatedChapter[] {
  const { startTime, endTime, title, toc } = (stated ?? {}) as Readonly<Record<string, unknown>>;
  if (toc === false) return [];
  return [{ start: seconds(startTime), end: seconds(endTime), title: typeof title === "string" ? title : null }];
}

const seconds = (stated: unknown): number | null =>
  typeof stated === "number" && Number.isFinite(stated) ? stated : null;
