import { ascii, box, fullBox, u16, u32, u32Table, u64 } from "../boxes.ts";
import { bcp47ToMp4 } from "../../language.ts";
import { type Matrix, unityMatrix } from "../matrix.ts";
import type { TrackIndex } from "./track.ts";

/** Ticks per second in the movie header and in edit lists. */
const movieTimescale = 90_000;

/** Where the media data are in the file, bytes. */
export interface MediaDataRange {
  start: number;
  size: number;
}

/** Returns the boxes before the media data: `ftyp` and `moov` (ISO/IEC 14496-12 §4.3, §8.2). */
export function indexBoxes(tracks: readonly TrackIndex[], data: MediaDataRange): Uint8Array {
  const originS = Math.min(...tracks.map(startS));
  const movieTracks = tracks.map((track) => toMovieTrack(track, originS));
  const duration = Math.max(...movieTracks.map(({ end }) => end));
  return Buffer.concat([
    fileType(tracks),
    box(
      "moov",
      headerBox(
        "mvhd",
        0,
        u32(movieTimescale),
        duration,
        u32(0x10000),
        u16(0x100),
        new Uint8Array(10),
        matrixField(unityMatrix),
        new Uint8Array(24),
        u32(tracks.length + 1),
      ),
      ...movieTracks.map((track, i) => trackBox(track, i + 1, data)),
    ),
  ]);
}

/** Returns the seconds from the start of what is presented first to the end of what is presented last. */
export function movieDuration(tracks: readonly TrackIndex[]): number {
  const ends = tracks.map(({ parts, format }) => parts.at(-1)!.endTicks / format.timescale);
  return Math.max(...ends) - Math.min(...tracks.map(startS));
}

function matrixField(matrix: Matrix): Uint8Array {
  return u32Table(Uint32Array.from(matrix));
}

/** Returns where the track starts on the presentation timeline, seconds. */
export function startS({ parts, format }: TrackIndex): number {
  return parts[0]!.startTicks / format.timescale;
}

type MovieTrack = ReturnType<typeof toMovieTrack>;

/** Times of a track in the movie are movie ticks from the start of the presentation; `mediaTicks` are its own. */
function toMovieTrack(track: TrackIndex, originS: number) {
  const { timescale } = track.format;
  const parts = track.parts.map(({ startTicks, endTicks, mediaTicks, isCut }) => {
    const start = Math.round((startTicks / timescale - originS) * movieTimescale);
    const shown = ((endTicks - startTicks) / timescale) * movieTimescale;
    // The last sample is shown to its end; the first one after a cut is not shown.
    return { start, end: start + (isCut ? Math.round(shown) : Math.ceil(shown)), mediaTicks };
  });
  return { track, parts, end: Math.max(...parts.map(({ end }) => end)) };
}

function fileType(tracks: readonly TrackIndex[]): Uint8Array {
  const isAudio = tracks.every(({ format }) => format.kind === "audio");
  const brands = isAudio ? "isommp42" : "isomiso2avc1mp41";
  return box("ftyp", ascii(isAudio ? "M4A " : "isom"), u32(0x200), ascii(brands));
}

function trackBox(movieTrack: MovieTrack, id: number, data: MediaDataRange): Uint8Array {
  const { format } = movieTrack.track;
  const header = headerBox(
    "tkhd",
    0b111,
    u32(id, 0),
    movieTrack.end,
    new Uint8Array(8),
    u16(0, 0, format.kind === "audio" ? 0x100 : 0, 0),
    matrixField(format.matrix ?? unityMatrix),
    u32(Math.round(format.width * 0x10000), Math.round(format.height * 0x10000)),
  );
  return box("trak", header, ...editList(movieTrack), mediaBox(movieTrack.track, data));
}

/** Returns no box if all of the track is presented from the start on. */
function editList({ track, parts }: MovieTrack): Uint8Array[] {
  const [first] = parts;
  const isUncut = parts.length === 1 && !track.parts[0]!.isCut;
  if (isUncut && first?.start === 0 && first.mediaTicks === 0) return [];
  let at = 0;
  const edits = parts.flatMap(({ start, end, mediaTicks }) => {
    const gap = start - at;
    at = end;
    const empty = { duration: gap, mediaTime: Buffer.alloc(8, 0xff) };
    const shown = { duration: end - start, mediaTime: u64(mediaTicks) };
    return gap > 0 ? [empty, shown] : [shown];
  });
  const entries = edits.map(({ duration, mediaTime }) => Buffer.concat([u64(duration), mediaTime, u32(0x10000)]));
  return [box("edts", fullBox("elst", 1, 0, u32(edits.length), Buffer.concat(entries)))];
}

/** Returns a `mdia` box: the track's format and its sample tables (ISO/IEC 14496-12 §8.4 to §8.7). */
function mediaBox(track: TrackIndex, data: MediaDataRange): Uint8Array {
  const { kind, timescale, language, name = "" } = track.format;
  const isVideo = kind === "video";
  return box(
    "mdia",
    headerBox("mdhd", 0, u32(timescale), track.mediaTicks, u16(bcp47ToMp4(language), 0)),
    fullBox("hdlr", 0, 0, u32(0), ascii(isVideo ? "vide" : "soun"), u32(0, 0, 0), utf8(name)),
    ...extendedLanguage(language),
    box(
      "minf",
      isVideo ? fullBox("vmhd", 0, 1, u32(0, 0)) : fullBox("smhd", 0, 0, u32(0)),
      box("dinf", fullBox("dref", 0, 0, u32(1), fullBox("url ", 0, 1))),
      sampleTable(track, data),
    ),
  );
}

/** Returns the text as a file has it, ended by a zero. */
const utf8 = (text: string): Uint8Array => Buffer.from(`${text.replaceAll("\0", "")}\0`);

/** Returns an `elng` box (§8.4.6) for what three letters cannot say: a region, a script. */
function extendedLanguage(language: string | null): Uint8Array[] {
  return language?.includes("-") === true ? [fullBox("elng", 0, 0, utf8(language))] : [];
}

/**
 * Returns an `mvhd`, `tkhd` or `mdhd` (§8.2.2, §8.3.2, §8.4.2) without creation time: `fields`, the duration
 * and `rest`. Its times have 64 bits if the duration needs them.
 */
function headerBox(
  type: string,
  flags: number,
  fields: Uint8Array,
  duration: number,
  ...rest: readonly Uint8Array[]
): Uint8Array {
  const isLong = duration > 0xffffffff;
  const times = isLong ? u64 : u32;
  return fullBox(type, isLong ? 1 : 0, flags, times(0, 0), fields, times(duration), ...rest);
}

function sampleTable(track: TrackIndex, data: MediaDataRange): Uint8Array {
  const { sampleEntries, sizes, syncs, compositions, durations, chunkRuns } = track;
  const parts = [fullBox("stsd", 0, 0, u32(sampleEntries.length), ...sampleEntries), table("stts", durations, 2)];
  if (compositions.some((value, i) => i % 2 === 1 && value !== 0)) parts.push(table("ctts", compositions, 2));
  if (syncs.length < sizes.length) parts.push(table("stss", syncs, 1));
  parts.push(
    table("stsc", chunkRuns, 3),
    fullBox("stsz", 0, 0, u32(0, sizes.length), u32Table(sizes)),
    chunkOffsets(track.chunks, data),
  );
  return box("stbl", ...parts);
}

function table(type: string, values: Uint32Array, columns: number): Uint8Array {
  return fullBox(type, 0, 0, u32(values.length / columns), u32Table(values));
}

function chunkOffsets(chunks: readonly number[], { start, size }: MediaDataRange): Uint8Array {
  const wide = start + size > 0xffffffff;
  const offsets = new Uint32Array(wide ? chunks.length * 2 : chunks.length);
  for (const [i, chunk] of chunks.entries()) {
    const offset = start + chunk;
    if (wide) offsets.set([Math.floor(offset / 2 ** 32), offset % 2 ** 32], i * 2);
    else offsets[i] = offset;
  }
  return fullBox(wide ? "co64" : "stco", 0, 0, u32(chunks.length), u32Table(offsets));
}
