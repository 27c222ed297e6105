import type { Chapter, Cue, TextTrack } from "../../additions.ts";
import { codePoints, readCueText, type StyledText } from "../../cue-text.ts";
import { ascii, box, u16, u32 } from "../boxes.ts";

/** A track of text, complete. */
export interface TextIndex {
  /** `sbtl`: subtitles, `text`: chapters. */
  handler: "sbtl" | "text";
  language: string | null;
  name: string;
  isEnabled: boolean;
  sampleEntry: Uint8Array;
  /** Of the media data; all samples are one after the other. */
  offset: number;
  sizes: Uint32Array;
  /** When the first sample is presented, milliseconds. */
  startMs: number;
  /** Counts and durations in turn (`stts`), milliseconds. */
  durations: Uint32Array;
  /** Of all samples. */
  durationMs: number;
}

/** Ticks per second. */
export const textTimescale = 1000;

/** Where a track of text goes. */
export interface TextOutput {
  /** Appends to the media data, and returns the offset in them. */
  append(bytes: Uint8Array): number;
  /** Of the presentation. */
  durationS: number;
}

interface Interval {
  startMs: number;
  endMs: number;
  sample: Uint8Array;
}

/** Writes a track of subtitles (3GPP TS 26.245 §5): cues that overlap are joined, where there is none the sample is empty. */
export function writeSubtitles(
  { language, name, role, cues }: TextTrack,
  isEnabled: boolean,
  { append, durationS }: TextOutput,
): TextIndex {
  const intervals = joinedCues(cues).map(({ startMs, endMs, texts }) => ({
    startMs,
    endMs,
    sample: tx3gSample(texts),
  }));
  const sampleEntry = textEntry("tx3g", role === "forced" ? allForced : 0);
  const samples = withoutGaps(intervals, toMs(durationS));
  return { handler: "sbtl", language, name, isEnabled, sampleEntry, startMs: 0, ...writeSamples(samples, append) };
}

/**
 * Writes a track of chapters, as QuickTime has it (QuickTime File Format, "Chapter Lists"). Each lasts until the next one:
 * an empty sample would be a chapter without title.
 */
export function writeChapters(chapters: readonly Chapter[], { append }: TextOutput): TextIndex {
  const samples = chapters.map(({ startS, endS, title }, index) => {
    const text = Buffer.from(title);
    const ms = toMs(chapters[index + 1]?.startS ?? endS) - toMs(startS);
    // The encoding is UTF-8.
    return { ms, bytes: Buffer.concat([u16(text.length), text, box("encd", u32(0x100))]) };
  });
  const common = { language: null, name: "", isEnabled: false, sampleEntry: textEntry("text", 1) };
  const startMs = toMs(chapters[0]?.startS ?? 0);
  return { handler: "text", ...common, startMs, ...writeSamples(samples, append) };
}

const toMs = (seconds: number): number => Math.round(seconds * textTimescale);

/** Cues that are shown at a time; further ones are not. */
const maxJoined = 20;

interface JoinedCues {
  startMs: number;
  endMs: number;
  texts: readonly string[];
}

/** Returns what is shown from each start or end of a cue to the next, in order. */
function joinedCues(cues: readonly Cue[]): JoinedCues[] {
  const timed = cues
    .map(({ startS, endS, text }) => ({ startMs: toMs(startS), endMs: toMs(endS), text }))
    .filter(({ startMs, endMs }) => endMs > startMs)
    .toSorted((a, b) => a.startMs - b.startMs);
  const joined: JoinedCues[] = [];
  let shown: typeof timed = [];
  let at = 0;
  const showUntil = (ms: number) => {
    while (shown.length > 0 && at < ms) {
      const endMs = Math.min(ms, ...shown.map((cue) => cue.endMs));
      if (endMs > at) joined.push({ startMs: at, endMs, texts: shown.map(({ text }) => text) });
      at = endMs;
      shown = shown.filter((cue) => cue.endMs > at);
    }
    at = ms;
  };
  for (const cue of timed) {
    showUntil(cue.startMs);
    if (shown.length < maxJoined) shown.push(cue);
  }
  showUntil(Infinity);
  return joined;
}

interface TextSample {
  ms: number;
  bytes: Uint8Array;
}

/** Returns the samples of the intervals; what is between them, and after the last, are empty samples. */
function withoutGaps(intervals: readonly Interval[], endMs: number): TextSample[] {
  const samples: TextSample[] = [];
  let at = 0;
  for (const { startMs, endMs: end, sample } of intervals) {
    if (startMs > at) samples.push({ ms: startMs - at, bytes: u16(0) });
    samples.push({ ms: end - startMs, bytes: sample });
    at = end;
  }
  if (at > 0 && endMs > at) samples.push({ ms: endMs - at, bytes: u16(0) });
  return samples;
}

function writeSamples(samples: readonly TextSample[], append: TextOutput["append"]) {
  return {
    offset: append(Buffer.concat(samples.map(({ bytes }) => bytes))),
    sizes: Uint32Array.from(samples, ({ bytes }) => bytes.length),
    durations: Uint32Array.from(samples.flatMap(({ ms }) => [1, ms])),
    durationMs: samples.reduce((sum, { ms }) => sum + ms, 0),
  };
}

/** UTF-16 units; their UTF-8 has at most 65,535 bytes. */
const maxTextLength = 21_845;
const maxStyles = 1_000;

function tx3gSample(texts: readonly string[]): Uint8Array {
  const { text, styles } = joinTexts(texts.map(readCueText));
  const bytes = Buffer.from(text.slice(0, maxTextLength).toWellFormed());
  const within = styles.filter(({ end }) => end <= maxTextLength).slice(0, maxStyles);
  const records = within.map(({ start, end, faces }) => styleRecord(start, end, faces));
  const style = records.length === 0 ? new Uint8Array() : box("styl", u16(records.length), ...records);
  return Buffer.concat([u16(bytes.length), bytes, style]);
}

function joinTexts(texts: readonly StyledText[]): StyledText {
  const joined: StyledText = { text: "", styles: [] };
  let length = 0;
  for (const { text, styles } of texts) {
    if (joined.text !== "") {
      joined.text += "\n";
      length += 1;
    }
    joined.text += text;
    for (const { start, end, faces } of styles) joined.styles.push({ start: start + length, end: end + length, faces });
    length += codePoints(text);
  }
  return joined;
}

/** Every sample is shown though subtitles are off. */
const allForced = 0x4000_0000 | 0x8000_0000;
const fontId = 1;
const fontSize = 16;
const white = Uint8Array.of(255, 255, 255, 255);

function styleRecord(start: number, end: number, faces: number): Uint8Array {
  return Buffer.concat([u16(start, end, fontId), Uint8Array.of(faces, fontSize), white]);
}

/** Returns a TextSampleEntry (3GPP TS 26.245 §5.16): white text at the bottom, centred. QuickTime's `text` is much the same. */
function textEntry(type: "tx3g" | "text", displayFlags: number): Uint8Array {
  const font = "Arial";
  return box(
    type,
    new Uint8Array(6),
    u16(1),
    u32(displayFlags >>> 0),
    Uint8Array.of(1, 255),
    new Uint8Array(4),
    new Uint8Array(8),
    styleRecord(0, 0, 0),
    box("ftab", u16(1, fontId), Uint8Array.of(font.length), ascii(font)),
  );
}
