import { ascii, box, fullBox, u16, u32, u64 } from "../boxes.ts";
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
        unityMatrix,
        new Uint8Array(24),
        u32(tracks.length + 1),
      ),
      ...movieTracks.map((track, i) => trackBox(track, i + 1, data)),
    ),
  ]);
}

/** Returns the seconds from the start of the first sample of all tracks to the end of the last. */
export function movieDuration(tracks: readonly TrackIndex[]): number {
  const ends = tracks.map(({ endTicks, format }) => endTicks / format.timescale);
  return Math.max(...ends) - Math.min(...tracks.map(startS));
}

const unityMatrix = u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000);

function startS({ startTicks, format }: TrackIndex): number {
  return startTicks / format.timescale;
}

/** A track in the movie; times are movie ticks from the start of the presentation. */
interface MovieTrack {
  track: TrackIndex;
  start: number;
  end: number;
}

function toMovieTrack(track: TrackIndex, originS: number): MovieTrack {
  const start = Math.round((startS(track) - originS) * movieTimescale);
  const shownS = (track.endTicks - track.startTicks) / track.format.timescale;
  return { track, start, end: start + Math.ceil(shownS * movieTimescale) };
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
    unityMatrix,
    u32(Math.round(format.width * 0x10000), Math.round(format.height * 0x10000)),
  );
  return box("trak", header, ...editList(movieTrack), mediaBox(movieTrack.track, data));
}

/** Returns no box if the track starts with its first media time at the start of the presentation. */
function editList({ track, start, end }: MovieTrack): Uint8Array[] {
  if (start === 0 && track.shownFromTicks === 0) return [];
  const edits = [{ duration: end - start, mediaTime: u64(track.shownFromTicks) }];
  if (start > 0) edits.unshift({ duration: start, mediaTime: Buffer.alloc(8, 0xff) });
  const entries = edits.flatMap(({ duration, mediaTime }) => [
    u64(duration),
    mediaTime,
    u32(0x10000),
  ]);
  return [box("edts", fullBox("elst", 1, 0, u32(edits.length), ...entries))];
}
