import { ascii, box, fullBox, u16, u32, u32Table, u64 } from "../boxes.ts";
import { type Matrix, unityMatrix } from "../matrix.ts";
import { headerBox, mediaBox, type MediaDataRange } from "./media-box.ts";
import type { TrackIndex } from "./track.ts";

/** Ticks per second in the movie header and in edit lists. */
const movieTimescale = 90_000;

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

function startS({ parts, format }: TrackIndex): number {
  return parts[0]!.startTicks / format.timescale;
}

/** A track in the movie; times are movie ticks from the start of the presentation. */
interface MovieTrack {
  track: TrackIndex;
  parts: MoviePart[];
  end: number;
}

interface MoviePart {
  start: number;
  end: number;
  /** Ticks of the track. */
  mediaTicks: number;
}

function toMovieTrack(track: TrackIndex, originS: number): MovieTrack {
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

/** Returns no box if the whole track is presented from the start on. */
function editList({ track, parts }: MovieTrack): Uint8Array[] {
  const [first] = parts;
  const isWhole = parts.length === 1 && !track.parts[0]!.isCut;
  if (isWhole && first?.start === 0 && first.mediaTicks === 0) return [];
  let at = 0;
  const edits = parts.flatMap(({ start, end, mediaTicks }) => {
    const gap = start - at;
    at = end;
    const empty = { duration: gap, mediaTime: Buffer.alloc(8, 0xff) };
    const shown = { duration: end - start, mediaTime: u64(mediaTicks) };
    return gap > 0 ? [empty, shown] : [shown];
  });
  const entries = edits.map(({ duration, mediaTime }) =>
    Buffer.concat([u64(duration), mediaTime, u32(0x10000)]),
  );
  return [box("edts", fullBox("elst", 1, 0, u32(edits.length), Buffer.concat(entries)))];
}
