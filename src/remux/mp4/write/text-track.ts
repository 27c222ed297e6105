import type { Additions, Chapter, Cue, TextTrack } from "../../additions.ts";
import { codePoints, readCueText, type StyledPart, type StyledText } from "../../cue-text.ts";
import { ascii, box, roleData, u16, u32 } from "../boxes.ts";

/** A track of text, complete. */
export interface TextIndex {
  /** `sbtl`: subtitles, `text`: chapters. */
  handler: "sbtl" | "text";
  language: string | null;
  name: string;
  isEnabled: boolean;
  /** A UserDataBox; default: none. */
  userData?: Uint8Array;
  sampleEntry: Uint8Array;
  /** Of the media data; all samples are one after the other. */
  offset: number;
  sizes: Uint32Array;
  /** When the first sample is presented, milliseconds; the last one is shown for so much less than it lasts. */
  startMs: number;
  /** Counts and durations in turn (`stts`), milliseconds. */
  durations: Uint32Array;
  /** Of all samples. */
  durationMs: number;
}

/** Ticks per second. */
export const textTimescale = 1000;

/** Where a track of text goes. */
interface TextOutput {
  /** Appends to the media data, and returns the offset in them. */
  append(bytes: Uint8Array): number;
  /** Of the presentation. */
  durationS: number;
}

/** Writes the tracks of subtitles, of which the first forced one is shown unless a viewer decides otherwise, and then that of chapters. */
export function writeTexts(
  { subtitles, chapters }: Pick<Additions, "subtitles" | "chapters">,
  output: TextOutput,
): TextIndex[] {
  const firstForced = subtitles.findIndex(({ role }) => role === "forced");
  const written = subtitles.map((track, index) => writeSubtitles(track, index === firstForced, output));
  return chapters.length === 0 ? written : [...written, writeChapters(chapters, output)];
}

const roleWords = { subtitles: "subtitle", captions: "caption", forced: "forced-subtitle" } as const;

/** Writes a track of subtitles (3GPP TS 26.245 §5): cues that overlap are joined, where there is none the sample is empty. */
export function writeSubtitles(
  { language, name, role, cues }: TextTrack,
  isEnabled: boolean,
  { append, durationS }: TextOutput,
): TextIndex {
  const sampleEntry = textEntry("tx3g", role === "forced" ? allForced : 0);
  const samples = withoutGaps(joinedCues(cues), toMs(durationS));
  const common = { language, name, isEnabled, sampleEntry, userData: roleData(roleWords[role]), startMs: 0 };
  return { handler: "sbtl", ...common, ...writeSamples(samples, append) };
}

/**
 * Writes a track of chapters, as QuickTime has it (QuickTime File Format, "Chapter Lists"). Each lasts until the next one:
 * an empty sample would be a chapter without title. The last sample is longer than what is shown of it by the time before
 * the first chapter: FFmpeg ends the last chapter after the duration of the media, without the empty edit.
 */
function writeChapters(chapters: readonly Chapter[], { append }: TextOutput): TextIndex {
  const startMs = toMs(chapters[0]?.startS ?? 0);
  const samples = chapters.map(({ startS, endS, title }, index) => {
    const text = Buffer.from(title);
    const isLast = index === chapters.length - 1;
    const ms = toMs(chapters[index + 1]?.startS ?? endS) - toMs(startS) + (isLast ? startMs : 0);
    // The encoding is UTF-8.
    return { ms, bytes: Buffer.concat([u16(text.length), text, box("encd", u32(0x100))]) };
  });
  const common = { language: null, name: "", isEnabled: false, sampleEntry: textEntry("text", 1) };
  return { handler: "text", ...common, startMs, ...writeSamples(samples, append) };
}

const toMs = (seconds: number): number => Math.round(seconds * textTimescale);

/** Cues that are shown at a time; further ones are not. */
const maxJoined = 20;
/** Of the texts of a track, some of them several times: afterwards one cue is shown at a time. */
const maxJoinedLength = 8 << 20;

interface JoinedCues {
  startMs: number;
  endMs: number;
  texts: readonly string[];
}

/** Yields what is shown from each start or end of a cue to the next, in order. */
function* joinedCues(cues: readonly Cue[]): Generator<JoinedCues> {
  const sorted = cues.toSorted((a, b) => toMs(a.startS) - toMs(b.startS));
  let shown: { endMs: number; text: string }[] = [];
  let at = 0;
  let length = 0;
  function* showUntil(ms: number): Generator<JoinedCues> {
    while (shown.length > 0 && at < ms) {
      const endMs = Math.min(ms, ...shown.map((cue) => cue.endMs));
      if (endMs > at) {
        const texts = shown.map(({ text }) => text);
        length += texts.reduce((sum, text) => sum + text.length, 0);
        yield { startMs: at, endMs, texts };
      }
      at = endMs;
      shown = shown.filter((cue) => cue.endMs > at);
    }
    at = ms;
  }
  for (const { startS, endS, text } of sorted) {
    const [startMs, endMs] = [toMs(startS), toMs(endS)];
    if (endMs <= startMs) continue;
    const maxShown = length < maxJoinedLength ? maxJoined : 1;
    if (shown.filter((cue) => cue.endMs > startMs).length >= maxShown) continue;
    yield* showUntil(startMs);
    shown.push({ endMs, text });
  }
  yield* showUntil(Infinity);
}

interface TextSample {
  ms: number;
  bytes: Uint8Array;
}

/** Yields the samples of the cues; what is between them, and after the last, are empty samples. */
function* withoutGaps(joined: Iterable<JoinedCues>, endMs: number): Generator<TextSample> {
  let at = 0;
  for (const { startMs, endMs: end, texts } of joined) {
    if (startMs > at) yield { ms: startMs - at, bytes: u16(0) };
    yield { ms: end - startMs, bytes: tx3gSample(texts) };
    at = end;
  }
  if (at > 0 && endMs > at) yield { ms: endMs - at, bytes: u16(0) };
}

const samplesAtATime = 1_000;

function writeSamples(samples: Iterable<TextSample>, append: TextOutput["append"]) {
  const [sizes, durations]: [number[], number[]] = [[], []];
  let offset: number | null = null;
  let durationMs = 0;
  for (const group of groupsOf(samples, samplesAtATime)) {
    const at = append(Buffer.concat(group.map(({ bytes }) => bytes)));
    offset ??= at;
    for (const { ms, bytes } of group) {
      sizes.push(bytes.length);
      durations.push(1, ms);
      durationMs += ms;
    }
  }
  return { offset: offset ?? 0, sizes: Uint32Array.from(sizes), durations: Uint32Array.from(durations), durationMs };
}

function* groupsOf<T>(items: Iterable<T>, size: number): Generator<T[]> {
  let group: T[] = [];
  for (const item of items) {
    if (group.push(item) < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

/** UTF-16 units; their UTF-8 has at most 65,535 bytes. */
const maxTextLength = 21_845;
const maxStyles = 1_000;

function tx3gSample(texts: readonly string[]): Uint8Array {
  const { text, styles } = joinTexts(texts.map(readCueText));
  const bytes = Buffer.from(text.slice(0, maxTextLength).toWellFormed());
  const within = styles.filter(({ end }) => end <= maxTextLength).slice(0, maxStyles);
  const records = within.map(styleRecord);
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
    for (const style of styles) joined.styles.push({ ...style, start: style.start + length, end: style.end + length });
    length += codePoints(text);
  }
  return joined;
}

/** Every sample is shown though subtitles are off. */
const allForced = 0x4000_0000 | 0x8000_0000;
const fontId = 1;
const fontSize = 16;

function styleRecord({ start, end, faces, color }: StyledPart): Uint8Array {
  const opaque = Buffer.from(`${color ?? "ffffff"}ff`, "hex");
  return Buffer.concat([u16(start, end, fontId), Uint8Array.of(faces, fontSize), opaque]);
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
    styleRecord({ start: 0, end: 0, faces: 0, color: null }),
    box("ftab", u16(1, fontId), Uint8Array.of(font.length), ascii(font)),
  );
}
