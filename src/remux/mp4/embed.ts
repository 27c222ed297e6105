import { createReadStream, createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { type Additions, boundAdditions } from "../additions.ts";
import { openFile } from "../open-file.ts";
import { box, type Box, childrenOf, findChild, firstBox, getChild, typeAt, u32, unlessDamaged } from "./boxes.ts";
import {
  hasFixedData,
  hasOtherOffsets,
  moveChunks,
  moveFragment,
  moveFragmentIndex,
  withWideOffsets,
} from "./positions.ts";
import { readIndexAt } from "./read/movie-index.ts";
import { fileBoxes, readRange } from "./read/file-boxes.ts";
import { chapterTrackIds, readMovieHeader, readTrackHeader } from "./read/headers.ts";
import { numbersIn } from "./read/number-source.ts";
import { noDefaultsBox, textTrackBox } from "./write/index-boxes.ts";
import { userData } from "./write/tags.ts";
import { type TextIndex, writeTexts } from "./write/text-track.ts";

/**
 * Copies an MP4 file with another index, to which tags, chapters, a cover and subtitles are added; all its tracks and media
 * data stay. What it says itself is kept unless it is replaced. Returns false, and writes nothing, if it is
 * damaged, or says in further boxes where data are.
 *
 * @throws the file system's own errors; `signal.reason`
 */
export async function embedInMp4(
  source: string,
  target: string,
  given: Additions,
  { signal, ...options }: EmbedOptions,
): Promise<boolean> {
  const plan = unlessDamaged(() => planEmbedding(source, given, options));
  if (plan === undefined) return false;
  await pipeline(
    async function* parts() {
      let copied = 0;
      for (const { from, to, bytes } of plan) {
        if (from > copied) yield* createReadStream(source, { start: copied, end: from - 1 });
        yield bytes;
        copied = to;
      }
    },
    createWriteStream(target),
    { signal },
  );
  return true;
}

interface EmbedOptions {
  /** Of a fragmented file, whose index does not state it; `null`: unknown. */
  durationS: number | null;
  /** Longest file whose offsets have 32 bits. */
  narrowBytes?: number;
  signal: AbortSignal;
}

/** What replaces a part of the file. */
interface Replacement {
  from: number;
  to: number;
  bytes: Uint8Array;
}

/** Returns what is replaced, in order, up to the end of the file; undefined: nothing can be. */
function planEmbedding(
  path: string,
  given: Additions,
  { durationS, narrowBytes = 0xffffffff }: Omit<EmbedOptions, "signal">,
): Replacement[] | undefined {
  using file = openFile(path);
  const boxes = [...fileBoxes(file.fd, file.size)];
  const moov = boxes.find(({ type }) => type === "moov");
  const isFragmented = boxes.some(({ type }) => type === "moof");
  if (moov === undefined) return undefined;
  const bytes = readIndexAt(file, moov);
  if (hasOtherOffsets(bytes) || !isMovable(file.fd, boxes, moov)) return undefined;
  const stated = readMovie(bytes);
  const movie = isFragmented ? { ...stated, durationS: durationS ?? Infinity } : stated;
  if (!Number.isFinite(movie.durationS)) return undefined;
  const additions = boundAdditions(given, movie.durationS);
  const chunks: Uint8Array[] = [];
  let dataBytes = 0;
  const append = (chunk: Uint8Array): number => {
    chunks.push(chunk);
    dataBytes += chunk.length;
    return dataBytes - chunk.length;
  };
  const output = { append, durationS: movie.durationS };
  const { chapterTracks } = movie;
  // Fragments may have titles, too, and pictures of chapters have others.
  const isReplaced = !isFragmented && chapterTracks.every(({ isText }) => isText);
  const added = chapterTracks.length > 0 && !isReplaced ? { ...additions, chapters: [] } : additions;
  const own = { ...movie, additions: added, texts: writeTexts(added, output) };
  const layOut = (isWide: boolean): Layout => {
    // The length of the index does not depend on the offsets in it.
    const { length } = makeIndex(bytes, own, { isWide, delta: 0, dataStart: 0, moovEnd: moov.end });
    const grown = length - (moov.end - moov.start);
    // Before fragments, as an index of these is at the end.
    if (isFragmented)
      return { isWide, delta: grown + dataBytes + 8, dataStart: moov.end + grown + 8, moovEnd: moov.end };
    return { isWide, delta: grown, dataStart: file.size + grown + 8, moovEnd: moov.end };
  };
  const narrow = layOut(false);
  const layout = narrow.dataStart + dataBytes > narrowBytes ? layOut(true) : narrow;
  const index = makeIndex(bytes, own, layout);
  const data = box("mdat", ...chunks);
  const moved = isFragmented ? movedBoxes(file.fd, boxes, layout.delta) : [];
  if (moved.reduce((sum, { bytes: { length } }) => sum + length, 0) > maxMovedBytes) return undefined;
  const place = { from: moov.start, to: moov.end };
  const end = { from: file.size, to: file.size };
  return isFragmented
    ? [{ ...place, bytes: Buffer.concat([index, data]) }, ...moved, { ...end, bytes: new Uint8Array() }]
    : [
        { ...place, bytes: index },
        { ...end, bytes: data },
      ];
}

/** Larger ones would take much memory. */
const maxMovedBytes = 64 << 20;

/** Returns the boxes of fragments that say where something is from the start of the file. */
function movedBoxes(fd: number, boxes: readonly Box[], delta: number): Replacement[] {
  return boxes.flatMap((part) => {
    const { type, start, end } = part;
    if (type !== "moof" && type !== "mfra") return [];
    const bytes = readRange(fd, part);
    if (type === "moof" && !hasFixedData(bytes)) return [];
    const move = type === "moof" ? moveFragment : moveFragmentIndex;
    return [{ from: start, to: end, bytes: move(bytes, delta) }];
  });
}

/** Whether what follows the index can be moved. */
function isMovable(fd: number, boxes: readonly Box[], moov: Box): boolean {
  const isBefore = ({ type, start }: Box) => (type === "moof" || type === "sidx") && start < moov.start;
  return !boxes.some((part) => {
    return isBefore(part) || (part.type === "meta" && hasOtherOffsets(readRange(fd, part)));
  });
}

function readMovie(bytes: Uint8Array) {
  const { timescale, duration } = readMovieHeader(bytes, getChild(bytes, firstBox(bytes), "mvhd"));
  const traks = childrenOf(bytes, firstBox(bytes), "trak");
  const handlerOf = (trak: Box) => typeAt(bytes, getChild(bytes, trak, "mdia", "hdlr").body + 8);
  const main = traks.find((trak) => handlerOf(trak) === "vide") ?? traks[0];
  const headers = traks.map((trak) => readTrackHeader(bytes, getChild(bytes, trak, "tkhd")));
  const referenced = chapterTrackIds(numbersIn(bytes), firstBox(bytes));
  const { width, height } = headers[traks.findIndex((trak) => trak === main)] ?? { width: 0, height: 0 };
  return {
    timescale,
    durationS: (duration ?? 0) / timescale,
    // Muxers of fragments state one that is taken, or all ones.
    nextId: Math.max(0, ...headers.map(({ id }) => id).filter((id) => id < 2 ** 31)) + 1,
    main,
    width,
    height,
    chapterTracks: traks
      .filter((_, i) => referenced.has(headers[i]!.id))
      .map((trak) => ({ start: trak.start, isText: handlerOf(trak) === "text" })),
  };
}

interface Layout {
  /** Offsets have 64 bits. */
  isWide: boolean;
  /** By how much what follows the index is moved. */
  delta: number;
  dataStart: number;
  moovEnd: number;
}

function makeIndex(
  bytes: Uint8Array,
  movie: ReturnType<typeof readMovie> & { additions: Additions; texts: readonly TextIndex[] },
  { isWide, delta, dataStart, moovEnd }: Layout,
): Uint8Array {
  const { main, nextId, additions, texts, timescale, chapterTracks } = movie;
  const range = { start: dataStart, size: isWide ? 2 ** 32 : 0 };
  const ids = texts.map((_, i) => nextId + i);
  const chapterId = ids[texts.findIndex(({ handler }) => handler === "text")];
  const replaced = new Set(chapterId === undefined ? [] : chapterTracks.map(({ start }) => start));
  const all = childrenOf(bytes, firstBox(bytes));
  const children = all.filter(({ type, start }) => type !== "udta" && !replaced.has(start));
  const copies = children.map((child) => {
    const copy = isWide ? withWideOffsets(bytes, child) : Buffer.from(bytes.subarray(child.start, child.end));
    if (child.type === "mvhd") copy.writeUInt32BE(nextId + texts.length, copy.length - 4);
    if (child.type === "mvex") return box("mvex", copy.subarray(8), ...ids.map(noDefaultsBox));
    if (child.type !== "trak") return copy;
    if (delta !== 0) moveChunks(copy, delta, moovEnd);
    return chapterId === undefined ? copy : withChapters(copy, child.start === main?.start ? [chapterId] : []);
  });
  const tracks = texts.map((text, i) => textTrackBox(text, ids[i]!, range, { ...movie, timescale }));
  return box("moov", ...copies, ...tracks, ...userData(additions, readUserData(bytes, additions)));
}

/** Returns a track whose chapters are in these tracks, instead of others. */
function withChapters(trak: Buffer, ids: readonly number[]): Uint8Array {
  const copy = ({ start, end }: Box) => trak.subarray(start, end);
  const children = childrenOf(trak, firstBox(trak));
  const others = children.filter(({ type }) => type !== "tref").map(copy);
  const known = children.filter(({ type }) => type === "tref").flatMap((tref) => childrenOf(trak, tref));
  const kept = known.filter(({ type }) => type !== "chap").map(copy);
  const references = [...kept, ...ids.map((id) => box("chap", u32(id)))];
  return box("trak", ...others, ...(references.length === 0 ? [] : [box("tref", ...references)]));
}

/** The `meta` box of QuickTime has no version. */
function readUserData(bytes: Uint8Array, { chapters }: Additions) {
  const found = findChild(bytes, firstBox(bytes), "udta");
  const none = { items: [], others: [] };
  if (found === undefined) return none;
  // Old files end it with four zeros.
  const kept = unlessDamaged(() => {
    const children = childrenOf(bytes, found);
    const meta = children.find(({ type }) => type === "meta");
    const body = meta && (typeAt(bytes, meta.body + 4) === "hdlr" ? meta.body : meta.body + 4);
    const list = meta && childrenOf(bytes, { ...meta, body: body! }, "ilst")[0];
    const items = list === undefined ? [] : childrenOf(bytes, list);
    const others = children.filter(({ type }) => type !== "meta" && (type !== "chpl" || chapters.length === 0));
    const copy = ({ start, end }: Box) => bytes.subarray(start, end);
    return { items: items.map(copy), others: others.map(copy) };
  });
  return kept ?? none;
}
