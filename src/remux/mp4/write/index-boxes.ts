import { ascii, box, fullBox, u16, u32, u32Table, u64 } from "../boxes.ts";
import { type Matrix, unityMatrix } from "../matrix.ts";
import type { TrackFormat } from "../../samples.ts";
import { headerBox, mediaBox, type MediaDataRange, type MediaDescription, type SampleTables } from "./media-box.ts";
import { type TextIndex, textTimescale } from "./text-track.ts";
import type { TrackIndex } from "./track.ts";

/** Ticks per second in the movie header and in edit lists. */
export const movieTimescale = 90_000;

/** What an index has besides the tracks of media. */
interface IndexAdditions {
  texts: readonly TextIndex[];
  /** Boxes at its end. */
  userData: readonly Uint8Array[];
}

/** Returns the boxes before the media data: `ftyp` and `moov` (ISO/IEC 14496-12 §4.3, §8.2). */
export function indexBoxes(
  added: readonly TrackIndex[],
  data: MediaDataRange,
  { texts, userData }: IndexAdditions = { texts: [], userData: [] },
): Uint8Array {
  const tracks = added.toSorted((a, b) => placeOf(a) - placeOf(b));
  const originS = Math.min(...tracks.map(startS));
  const audio = tracks.filter(({ format }) => format.kind === "audio");
  const rankOf = (track: TrackIndex) => {
    if (audio.length < 2 || !audio.includes(track)) return null;
    return track === audio[0] ? ("first" as const) : ("further" as const);
  };
  const movieTracks = tracks.map((track) => ({ ...toMovieTrack(track, originS), audioRank: rankOf(track) }));
  const duration = Math.max(...movieTracks.map(({ end }) => end));
  const main = movieTracks.find(({ track }) => track.format.kind === "video") ?? movieTracks[0]!;
  const chapters = texts.findIndex(({ handler }) => handler === "text");
  const reference = chapters < 0 ? [] : [box("tref", box("chap", u32(tracks.length + chapters + 1)))];
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
        u32(tracks.length + texts.length + 1),
      ),
      ...movieTracks.map((track, i) => trackBox(track, i + 1, data, track === main ? reference : [])),
      ...texts.map((text, i) => textTrackBox(text, tracks.length + i + 1, data, sizeOf(main.track))),
      ...userData,
    ),
  ]);
}

/** Video, which is where it was added, and audio of the first place are before all others. */
const placeOf = ({ format: { kind, place = 0 } }: TrackIndex): number => (kind === "video" ? 0 : place);

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

type MovieTrack = ReturnType<typeof toMovieTrack> & {
  /** Of several audio tracks the first is played; `null`: it is not one of several. */
  audioRank: "first" | "further" | null;
};

/** Times of a track in the movie are movie ticks from the start of the presentation; `mediaTicks` are its own. */
function toMovieTrack(track: TrackIndex, originS: number) {
  const { timescale } = track.format;
  const toMovie = (ticks: number) => (ticks / timescale - originS) * movieTimescale;
  let reached = { endTicks: Number.NaN, end: 0 };
  const parts = track.parts.map(({ startTicks, endTicks, mediaTicks, isCut }) => {
    const start = startTicks === reached.endTicks ? reached.end : Math.round(toMovie(startTicks));
    const length = ((endTicks - startTicks) * movieTimescale) / timescale;
    // The last sample is shown to its end; the first one after a cut is not shown, not even for a part of a tick.
    const end = start + (isCut ? Math.floor(length) : Math.ceil(length));
    reached = { endTicks, end };
    return { start, end, mediaTicks };
  });
  return { track, parts, end: Math.max(...parts.map(({ end }) => end)) };
}

function fileType(tracks: readonly TrackIndex[]): Uint8Array {
  const isAudio = tracks.every(({ format }) => format.kind === "audio");
  const brands = isAudio ? "isommp42" : "isomiso2avc1mp41";
  return box("ftyp", ascii(isAudio ? "M4A " : "isom"), u32(0x200), ascii(brands));
}

function trackBox(
  movieTrack: MovieTrack,
  id: number,
  data: MediaDataRange,
  references: readonly Uint8Array[],
): Uint8Array {
  const { track, audioRank, end } = movieTrack;
  const { kind, userData = new Uint8Array() } = track.format;
  const group = audioRank === null ? 0 : audioGroup;
  const shown = { ...track.format, group, volume: kind === "audio" ? 0x100 : 0 };
  const header = trackHeader(audioRank === "further" ? inMovie : enabled, id, end, shown);
  return box("trak", header, ...editList(movieTrack), ...references, mediaBox(mediaOf(track), data), userData);
}

interface ShownTrack extends Pick<TrackFormat, "width" | "height" | "matrix"> {
  group?: number;
  volume?: number;
}

/** Returns a `tkhd` box (§8.3.2); `end`: in ticks of the movie. */
function trackHeader(flags: number, id: number, end: number, shown: ShownTrack): Uint8Array {
  const { width, height, matrix = unityMatrix, group = 0, volume = 0 } = shown;
  const size = u32(Math.round(width * 0x10000), Math.round(height * 0x10000));
  const place = u16(0, group, volume, 0);
  return headerBox("tkhd", flags, u32(id, 0), end, new Uint8Array(8), place, matrixField(matrix), size);
}

/** Returns the defaults (`trex`, §8.8.3) of the samples of a track in fragments: there are none. */
export const noDefaultsBox = (id: number): Uint8Array => fullBox("trex", 0, 0, u32(id, 1, 0, 0, 0));

/** In `tkhd`: the track is part of the movie; also: it is shown by default. */
const inMovie = 0b110;
const enabled = 0b111;
/** Of tracks of which one is shown at a time. */
const audioGroup = 1;
const subtitleGroup = 2;

/** Returns the `trak` box of a text track, which is as large as the video; `timescale` is that of the movie. */
export function textTrackBox(
  text: TextIndex,
  id: number,
  data: MediaDataRange,
  { width, height, timescale = movieTimescale }: { width: number; height: number; timescale?: number },
): Uint8Array {
  const isSubtitles = text.handler === "sbtl";
  const toTicks = (ms: number) => Math.round((ms * timescale) / 1000);
  const [startTicks, endTicks] = [toTicks(text.startMs), toTicks(text.durationMs)];
  const shown = { width, height, group: isSubtitles ? subtitleGroup : 0 };
  const header = trackHeader(text.isEnabled ? enabled : inMovie, id, endTicks, shown);
  const { sizes, durations, sampleEntry } = text;
  const tables: SampleTables = {
    sampleEntries: [sampleEntry],
    sizes,
    durations,
    compositions: new Uint32Array(),
    syncs: sizes,
    groups: [],
    chunkRuns: Uint32Array.of(1, sizes.length, 1),
    chunks: [text.offset],
  };
  const mediaHeader = isSubtitles ? fullBox("nmhd", 0, 0) : quickTimeTextHeader();
  const times = { timescale: textTimescale, duration: text.durationMs };
  const media = mediaBox({ ...text, ...times, header: mediaHeader, tables }, data);
  const edits = startTicks === 0 ? [] : [editBox([emptyEdit(startTicks), shownEdit(endTicks - startTicks, 0)])];
  return box("trak", header, ...edits, media, text.userData ?? new Uint8Array());
}

const sizeOf = ({ format: { width, height } }: TrackIndex) => ({ width, height });

/** Returns a `gmhd` box (QuickTime File Format, "Base Media Information Header Atoms"). */
function quickTimeTextHeader(): Uint8Array {
  const graphics = fullBox("gmin", 0, 0, u16(0x40, 0x8000, 0x8000, 0x8000, 0, 0));
  return box("gmhd", graphics, box("text", u16(1), u32(0, 0, 0, 1, 0, 0, 0, 0x4000), u16(0)));
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
    const shown = shownEdit(end - start, mediaTicks);
    return gap > 0 ? [emptyEdit(gap), shown] : [shown];
  });
  return [editBox(edits)];
}

interface EditEntry {
  /** In ticks of the movie. */
  duration: number;
  mediaTime: Uint8Array;
}

const emptyEdit = (duration: number): EditEntry => ({ duration, mediaTime: Buffer.alloc(8, 0xff) });
const shownEdit = (duration: number, mediaTicks: number): EditEntry => ({ duration, mediaTime: u64(mediaTicks) });

function editBox(edits: readonly EditEntry[]): Uint8Array {
  const entries = edits.map(({ duration, mediaTime }) => Buffer.concat([u64(duration), mediaTime, u32(0x10000)]));
  return box("edts", fullBox("elst", 1, 0, u32(edits.length), Buffer.concat(entries)));
}

function mediaOf(track: TrackIndex): MediaDescription {
  const { kind, timescale, language, name = "" } = track.format;
  const isVideo = kind === "video";
  const header = isVideo ? fullBox("vmhd", 0, 1, u32(0, 0)) : fullBox("smhd", 0, 0, u32(0));
  const common = { timescale, language, name, header };
  return { ...common, handler: isVideo ? "vide" : "soun", duration: track.mediaTicks, tables: track };
}
