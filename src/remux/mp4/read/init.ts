import { ServiceError } from "../../../model/errors.ts";
import { firstAudio, type TrackSlot } from "../../audio-choice.ts";
import { openFullBox } from "../box-reader.ts";
import { type Box, boxesIn, childrenOf, damagedError, findChild, getChild, typeAt } from "../boxes.ts";
import {
  chapterTrackIds,
  gaplessEdits,
  hasSamples,
  isEncrypted,
  kindByHandler,
  readEdits,
  readGapless,
  readHandlerName,
  readLanguage,
  readMediaHeader,
  readMovieHeader,
  readRank,
  readTrackHeader,
} from "./headers.ts";
import { requireOwnMedia } from "./movie-index.ts";
import { numbersIn } from "./number-source.ts";
import { type GroupDescriptions, readGroupDescriptions } from "../sample-groups.ts";
import { isUnity, multiplyMatrices } from "../matrix.ts";
import { type AudioPacket, isProtected, readAudioPacket, readCodedSize, orderOpusNumbers } from "../sample-entry.ts";
import { type DemuxerOptions, type TrackFormat, type TrackKind, trackKinds } from "../../samples.ts";

/** A track as its init section (`moov`) describes it. */
export interface InitTrack extends TrackSlot {
  id: number;
  /** One per sample entry, in their order; at least one. */
  formats: readonly TrackFormat[];
  /** Presentation time = media time − this, ticks (edit list). */
  shiftTicks: number;
  /** Media time at which presentation begins, ticks. */
  startTicks: number;
  /** At which speed an edit plays its media, if not all are played as they are; 0: a picture stands still; else `null`. */
  rate: number | null;
  defaults: SampleDefaults;
  /** How QuickTime stores its audio, if the sizes of its samples do not say it. */
  packet?: AudioPacket;
  /** What it says of groups of samples, for its fragments too. */
  groups: GroupDescriptions;
  /** The `stbl` box: the sample tables of a file that is not, or not only, fragmented. */
  tables: Box;
}

/** Converts a media time to presentation time in seconds, without the timeline's offset. */
export function secondsOf({ formats, shiftTicks }: InitTrack, ticks: number): number {
  return (ticks - shiftTicks) / formats[0]!.timescale;
}

/** Values of samples that have none of their own (`trex`, ISO/IEC 14496-12 §8.8.3). */
export interface SampleDefaults {
  /** Number of the sample entry, from 1. */
  entry: number;
  duration: number;
  size: number;
  flags: number;
}

/** Of a track without a `trex`. */
export const noDefaults: SampleDefaults = { entry: 1, duration: 0, size: 0, flags: 0 };

/**
 * Reads from a `moov` box the first track with video, and the chosen tracks with audio. Encrypted ones (§8.12) are left out if others of their kind are not.
 * @throws ServiceError `upstream_invalid`; `drm_protected` if all video or all audio is encrypted.
 */
export function readInit(
  bytes: Uint8Array,
  moov: Box,
  { kinds, audio: choice = firstAudio, onTracks }: Pick<DemuxerOptions, "kinds" | "audio" | "onTracks">,
): InitTrack[] {
  const movie = readMovie(bytes, moov);
  const boxes = childrenOf(bytes, moov, "trak");
  const found = boxes.map((trak) => ({ trak, kind: kindOf(bytes, getChild(bytes, trak, "mdia")) }));
  const chapters = chapterTrackIds(numbersIn(bytes), moov);
  const ranks = new Map<Box, number>();
  const rankOf = (trak: Box) =>
    ranks.getOrInsertComputed(trak, () => readRank(bytes, trak, chapters, movie.isFragmented));
  // Players take one that is disabled, or has chapters, only if no other is there, or if their user chooses it.
  const used = found.filter(({ trak }) => movie.isFragmented || hasSamples(bytes, trak));
  const of = (wanted: TrackKind) => {
    const isWanted = ({ kind }: { kind: TrackKind | null }) => kind === wanted && kinds.includes(kind);
    const own = used.some(isWanted) ? used.filter(isWanted) : found.filter(isWanted);
    const clear = clearOf(bytes, own);
    const tracks = clear.toSorted((a, b) => rankOf(a.trak) - rankOf(b.trak));
    return { tracks, encrypted: own.length - clear.length };
  };
  const { tracks: audio, encrypted: encryptedAudio } = of("audio");
  const languageOf = ({ trak }: { trak: Box }) => readLanguage(bytes, getChild(bytes, trak, "mdia"));
  const chosen = audio.length > 0 ? choice.choose(audio.map(languageOf)) : [];
  const {
    tracks: [video, ...otherVideo],
    encrypted: encryptedVideo,
  } = of("video");
  const left = {
    video: otherVideo.filter(({ trak }) => rankOf(trak) < 3).length + encryptedVideo,
    audio: audio.length - chosen.length + encryptedAudio,
  };
  const usedKinds = kinds.filter((wanted) => used.some(({ kind }) => kind === wanted));
  onTracks?.({ kinds: usedKinds, audio: chosen.length, left });
  return [
    ...(video === undefined ? [] : [readTrack(bytes, video.trak, "video", movie)]),
    ...chosen.map(({ index, ...slot }) => readTrack(bytes, audio[index]!.trak, "audio", movie, slot)),
  ];
}

/** A track of which only the times are read. */
export type TimedTrack = Pick<InitTrack, "id" | "defaults" | "groups" | "shiftTicks"> & { timescale: number };

/** Reads from a `moov` box the first track with video, whether or not its media can be read. @throws ServiceError `upstream_invalid` */
export function readVideoTimes(bytes: Uint8Array, moov: Box): TimedTrack | undefined {
  const trak = childrenOf(bytes, moov, "trak").find((each) => kindOf(bytes, getChild(bytes, each, "mdia")) === "video");
  return trak && readTrackTimes(bytes, trak, readMovie(bytes, moov));
}

/** Reads a `trak` box of a movie, of whatever kind. @throws ServiceError `upstream_invalid` */
export function readTrackTimes(bytes: Uint8Array, trak: Box, movie: Movie): TimedTrack {
  const { id } = readTrackHeader(bytes, getChild(bytes, trak, "tkhd"));
  const { timescale } = readMediaHeader(bytes, getChild(bytes, trak, "mdia", "mdhd"));
  const { shiftTicks } = readEdits(bytes, trak, timescale / movie.timescale);
  return { id, timescale, shiftTicks, defaults: movie.defaults.get(id) ?? noDefaults, groups: new Map() };
}

/** A track and when players take it, as `readRank` returns it. */
export type RankedTrack = InitTrack & { rank: number };

/** Reads all video and audio tracks from a `moov` box, with their names, but for encrypted ones that `readInit` leaves out. @throws as `readInit` */
export function readAllTracks(bytes: Uint8Array, moov: Box): RankedTrack[] {
  const movie = readMovie(bytes, moov);
  const found = childrenOf(bytes, moov, "trak").flatMap((trak) => {
    const kind = kindOf(bytes, getChild(bytes, trak, "mdia"));
    return kind === null ? [] : [{ trak, kind }];
  });
  const ofKind = (kind: TrackKind) => found.filter((track) => track.kind === kind);
  const clear = new Set(trackKinds.flatMap((kind) => clearOf(bytes, ofKind(kind))));
  const chapters = chapterTrackIds(numbersIn(bytes), moov);
  return found
    .filter((track) => clear.has(track))
    .map(({ trak, kind }) => {
      const name = readHandlerName(bytes, getChild(bytes, trak, "mdia"));
      const { formats, ...track } = readTrack(bytes, trak, kind, movie);
      const rank = readRank(bytes, trak, chapters, movie.isFragmented);
      return { ...track, rank, formats: formats.map((format) => ({ ...format, name })) };
    });
}

/** Returns those of the tracks of a kind that are not encrypted; all if all are. */
function clearOf<T extends { trak: Box }>(bytes: Uint8Array, tracks: readonly T[]): readonly T[] {
  const clear = tracks.filter(({ trak }) => !isEncrypted(bytes, trak));
  return clear.length > 0 ? clear : tracks;
}

/** Reads what a `moov` box says of all tracks. @throws ServiceError `upstream_invalid` */
export function readMovie(bytes: Uint8Array, moov: Box) {
  return {
    ...readMovieHeader(bytes, getChild(bytes, moov, "mvhd")),
    isFragmented: findChild(bytes, moov, "mvex") !== undefined,
    defaults: readDefaults(bytes, moov),
    gapless: readGapless(bytes, moov),
  };
}

type Movie = ReturnType<typeof readMovie>;

/** Reads the `trex` boxes of a `moov`; the keys are track ids. */
export function readDefaults(bytes: Uint8Array, moov: Box): Map<number, SampleDefaults> {
  const mvex = findChild(bytes, moov, "mvex");
  const defaults = new Map<number, SampleDefaults>();
  for (const trex of mvex === undefined ? [] : childrenOf(bytes, mvex, "trex")) {
    const reader = openFullBox(bytes, trex);
    const id = reader.u32();
    const [entry, duration, size] = [reader.u32(), reader.u32(), reader.u32()];
    defaults.set(id, { entry, duration, size, flags: reader.u32() });
  }
  return defaults;
}

function kindOf(bytes: Uint8Array, mdia: Box): TrackKind | null {
  const hdlr = getChild(bytes, mdia, "hdlr");
  if (hdlr.end - hdlr.body < 12) throw damagedError(`"hdlr" is too short`);
  return kindByHandler(typeAt(bytes, hdlr.body + 8));
}

function readTrack(
  bytes: Uint8Array,
  trak: Box,
  kind: TrackKind,
  movie: Movie,
  slot: TrackSlot = { slot: kind, place: 0 },
): InitTrack {
  const header = readTrackHeader(bytes, getChild(bytes, trak, "tkhd"));
  const { id, width, height } = header;
  const matrix = multiplyMatrices(header.matrix, movie.matrix);
  const mdia = getChild(bytes, trak, "mdia");
  const { timescale, durationTicks } = readMediaHeader(bytes, getChild(bytes, mdia, "mdhd"));
  const implied = kind === "audio" ? gaplessEdits(movie.gapless, durationTicks) : [];
  const minf = getChild(bytes, mdia, "minf");
  const tables = getChild(bytes, minf, "stbl");
  const { edits, ...start } = readEdits(bytes, trak, timescale / movie.timescale, implied);
  const language = readLanguage(bytes, mdia);
  const shown = {
    ...(kind === "video" && !isUnity(matrix) && { matrix }),
    ...readUserData(bytes, trak),
    // Of fragments only the start is cut: the list is written before their number is known.
    ...(!movie.isFragmented && edits.length > 0 && { edits }),
  };
  const entries = readSampleEntries(bytes, getChild(bytes, tables, "stsd"));
  requireOwnMedia(bytes, minf, entries);
  const formats = entries.map((sampleEntry) => {
    const size = kind === "audio" ? { width: 0, height: 0 } : { width, height };
    const coded = kind === "video" && width === 0 ? readCodedSize(sampleEntry) : undefined;
    return { kind, timescale, sampleEntry, language, ...(coded ?? size), ...shown };
  });
  const defaults = movie.defaults.get(id) ?? noDefaults;
  const packet = kind === "audio" ? readAudioPacket(formats[0]!.sampleEntry) : undefined;
  const groups = readGroupDescriptions(bytes, tables);
  return { ...slot, ...start, id, formats, defaults, ...(packet && { packet }), groups, tables };
}

/** What a track says of itself is shorter. */
const maxUserDataBytes = 16 << 10;

/** Copied: the memory of a segment is used again for the next one. */
function readUserData(bytes: Uint8Array, trak: Box): Pick<TrackFormat, "userData"> {
  const box = findChild(bytes, trak, "udta");
  if (box === undefined || box.end - box.start > maxUserDataBytes) return {};
  return { userData: Uint8Array.from(bytes.subarray(box.start, box.end)) };
}

function readSampleEntries(bytes: Uint8Array, stsd: Box): Uint8Array[] {
  if (stsd.end - stsd.body < 8) throw damagedError(`"stsd" is too short`);
  const entries = [...boxesIn(bytes, stsd.body + 8, stsd.end)];
  const encrypted = entries.find(({ type }) => isProtected(type));
  if (encrypted !== undefined) throw new ServiceError("drm_protected", `the media are encrypted ("${encrypted.type}")`);
  if (entries.length === 0) throw damagedError("a track has no sample entry");
  // Copied: the memory of a segment is used again for the next one.
  return entries.map(({ start, end }) => orderOpusNumbers(Buffer.from(bytes.subarray(start, end))));
}
