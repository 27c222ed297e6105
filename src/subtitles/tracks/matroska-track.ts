import { setImmediate as nextTurn } from "node:timers/promises";
import { clock, type Cue, moveInnerTimes } from "../../remux/additions.ts";
import { readBlocks } from "../../remux/matroska/blocks.ts";
import { findElement, ids, readBytes } from "../../remux/matroska/elements.ts";
import { openEncodings } from "../../remux/matroska/frames.ts";
import { type MatroskaHeader, type MatroskaTrack, readHeader } from "../../remux/matroska/tracks.ts";
import { type NumberSource, numbersInFile } from "../../remux/mp4/read/number-source.ts";
import type { OpenFile } from "../../remux/open-file.ts";
import type { ByteSpan, MediaRange } from "../../remux/samples.ts";
import { unlessUnreadable } from "../../model/errors.ts";
import { readAss } from "../ass.ts";
import { decodeSubtitles, invalidSubtitlesError, lastS, linesOf, maxCues, maxSubtitleBytes } from "../text.ts";
import { readSubRipText } from "../timed-text.ts";
import { createVttStyles, createVttRegions } from "../vtt-header.ts";
import type { CountBytes } from "./mp4-track.ts";

/** Where a text of a track is, and when it is shown. */
interface PlacedBlock extends MediaRange {
  text: ByteSpan;
  /** The first addition of its group. */
  addition: ByteSpan | undefined;
}

interface TextBlock extends MediaRange {
  text: string;
  /** The first addition of its group; "": it has none. */
  addition: string;
}

type ReadText = (blocks: Iterable<TextBlock>, header: string) => Iterable<Cue>;

/** How text is read, by the CodecID of its track. */
export const matroskaTextCodecs: ReadonlyMap<string, ReadText> = new Map<string, ReadText>([
  ["S_TEXT/UTF8", readSubRipBlocks],
  ["S_TEXT/ASCII", readSubRipBlocks],
  ["S_TEXT/ASS", readAssBlocks],
  ["S_TEXT/SSA", readAssBlocks],
  ["S_ASS", readAssBlocks],
  ["S_SSA", readAssBlocks],
  ["S_TEXT/WEBVTT", (blocks, header) => readVttBlocks(blocks, header, fromAdditions)],
  ["D_WEBVTT/SUBTITLES", (blocks, header) => readVttBlocks(blocks, header, fromPayload)],
  ["D_WEBVTT/CAPTIONS", (blocks, header) => readVttBlocks(blocks, header, fromPayload)],
]);

/** Blocks that are looked at before other work gets its turn. */
const blocksAtATime = 2_000;

/**
 * Finds the blocks of these tracks of text of a Matroska or WebM file; returns for each a function that reads its cues, in order. Their times are
 * those of the file.
 *
 * @throws ServiceError `upstream_invalid`, here and later, if it is damaged or has more than 200,000 cues; the file system's own errors; `signal.reason`
 */
export async function openMatroskaTracks(
  file: OpenFile,
  numbers: readonly number[],
  signal: AbortSignal,
): Promise<Map<number, (count: CountBytes) => Iterable<Cue>>> {
  const source = numbersInFile(file.fd);
  const header = readHeader(source);
  const tracks = (header?.tracks ?? []).filter(({ number }) => numbers.includes(number));
  if (header === undefined || tracks.length === 0) return new Map();
  const blocks = await findBlocks(source, header, new Set(tracks.map(({ number }) => number)), signal);
  return new Map(
    tracks.map((track) => [
      track.number,
      (count) => cuesOf(file, source, track, blocks.get(track.number) ?? [], count),
    ]),
  );
}

async function findBlocks(
  source: NumberSource,
  header: MatroskaHeader,
  numbers: ReadonlySet<number>,
  signal: AbortSignal,
): Promise<Map<number, PlacedBlock[]>> {
  const found = new Map<number, PlacedBlock[]>();
  const toS = (ticks: number) => (ticks * header.timestampScale) / 1e9;
  let [seen, count] = [0, 0];
  for (const { track, ticks, duration, body, end, others } of readBlocks(source, header)) {
    if (++seen % blocksAtATime === 0) {
      await nextTurn();
      signal.throwIfAborted();
    }
    if (!numbers.has(track)) continue;
    if (++count > maxCues) throw invalidSubtitlesError(`they have more than ${maxCues} cues`);
    const own = found.getOrInsertComputed(track, () => []);
    const last = own.at(-1);
    // Without a duration it lasts until the next one.
    if (last?.endS === Infinity) last.endS = toS(ticks);
    const additions = others?.find(({ id }) => id === ids.blockAdditions);
    const addition = additions && findElement(source, additions, ids.blockMore, ids.blockAdditional);
    own.push({
      startS: toS(ticks),
      endS: duration === null ? Infinity : toS(ticks + duration),
      text: { start: body, end },
      addition: addition && { start: addition.body, end: addition.end },
    });
  }
  return found;
}

function cuesOf(
  file: OpenFile,
  source: NumberSource,
  track: MatroskaTrack,
  places: readonly PlacedBlock[],
  count: CountBytes,
): Iterable<Cue> {
  const open = openEncodings({ fd: file.fd, source }, track);
  const undo = (packed: Uint8Array) => open(packed, maxSubtitleBytes);
  // Some writers compress blocks, but not what they add to them.
  const undoIfDone = (packed: Uint8Array) => unlessUnreadable(() => undo(packed)) ?? packed;
  const readSpan = ({ start, end }: ByteSpan) => {
    count(end - start);
    return readBytes(file.fd, { body: start, end });
  };
  const toText = (bytes: Uint8Array) => decodeSubtitles(bytes, track.language).replaceAll(/\r\n?/g, "\n");
  const unpack = (packed: Uint8Array, unpacked = undo) => {
    const plain = unpacked(packed);
    count(Math.max(0, plain.length - packed.length));
    return toText(plain);
  };
  function* blocks(): Generator<TextBlock> {
    for (const { startS, endS, text, addition } of places) {
      const added = addition === undefined ? "" : unpack(readSpan(addition), undoIfDone);
      yield { startS, endS: Math.min(endS, lastS), text: unpack(readSpan(text)), addition: added };
    }
  }
  const config = findElement(source, track.entry, ids.codecPrivate);
  const header = config === undefined ? "" : toText(readSpan({ start: config.body, end: config.end }));
  return matroskaTextCodecs.get(track.codecId)?.(blocks(), header) ?? [];
}

function* readSubRipBlocks(blocks: Iterable<TextBlock>): Generator<Cue> {
  for (const { startS, endS, text } of blocks) {
    const shown = readSubRipText(text);
    if (shown.text !== "") yield { startS, endS, ...shown };
  }
}

const eventFields = "\n[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n";

/** Each has the order of reading, the layer, and the fields after the times (Matroska, "SSA/ASS Subtitles"). */
function readAssBlocks(blocks: Iterable<TextBlock>, header: string): Iterable<Cue> {
  function* pieces(): Generator<string> {
    yield `${header}${eventFields}`;
    for (const { startS, endS, text } of blocks) {
      const [, layer = "", rest = ""] = /^[^,]{0,20},([^,]{0,20}),(.*)$/s.exec(text) ?? [];
      yield `Dialogue: ${layer},${clock(startS)},${clock(endS)},${rest.replaceAll("\n", "\\N")}\n`;
    }
  }
  return readAss(pieces());
}

/** Returns the text and the settings of a block of WebVTT. */
type ReadParts = (block: TextBlock) => Pick<Cue, "text" | "settings">;

function* readVttBlocks(blocks: Iterable<TextBlock>, header: string, readParts: ReadParts): Generator<Cue> {
  const [styles, regions] = [createVttStyles(), createVttRegions()];
  for (const line of [...linesOf([header]), ""]) {
    styles.readLine(line);
    regions.readLine(line);
  }
  for (const block of blocks) {
    const { startS, endS } = block;
    const { text: written, settings } = readParts(block);
    const text = written.trim();
    if (text !== "") yield { startS, endS, text: styles.replaceIn(text), settings: regions.replaceIn(settings, text) };
  }
}

/** Matroska: settings, identifier and comments are an addition to the block; times within the text count from its start. */
const fromAdditions: ReadParts = ({ text, addition, startS }) => ({
  text: moveInnerTimes(text, startS),
  settings: addition.split("\n", 1)[0]!.trim(),
});

/** WebM: identifier, settings and text, each after the line of the one before. */
function fromPayload({ text }: TextBlock): ReturnType<ReadParts> {
  const [, settings = "", ...lines] = text.split("\n");
  return { text: lines.join("\n"), settings: settings.trim() };
}
