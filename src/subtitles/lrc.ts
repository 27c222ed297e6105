import type { Cue } from "../remux/additions.ts";
import { escapeText, invalidSubtitlesError, lastS, linesOf, maxCues } from "./text.ts";

const stamp = /\s{0,9}\[(\d{1,3}):(\d{1,2}(?:[.:]\d{1,3})?)\]/y;
const offset = /^\s{0,9}\[offset:\s{0,9}([+-]?\d{1,7})\s{0,9}\]/i;
/** When a word is sung. */
const wordTime = /<\d{1,3}:\d{1,2}(?:[.:]\d{1,3})?>/g;

/**
 * Reads lyrics in LRC: each line, which may have several times, is shown until the next one; an empty one ends the line before. The last
 * one lasts as long as the media. Times of words are left out. Other text has no cues.
 *
 * @throws ServiceError `upstream_invalid` for more than 200,000 cues.
 */
export function readLrc(pieces: Iterable<string>): Cue[] {
  const found: { startS: number; text: string }[] = [];
  let soonerS = 0;
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
