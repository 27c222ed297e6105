import { ServiceError } from "../../../model/errors.ts";
import { createBoxReader } from "../box-reader.ts";
import { type Box, boxesIn, damagedError, findChild, getChild, typeAt, viewOf } from "../boxes.ts";
import { type MovieHeader, readEdits, readMediaHeader, readMovieHeader, readTrackHeader } from "./headers.ts";
import { isUnity, multiplyMatrices } from "../matrix.ts";
import { readCodedSize } from "../sample-entry.ts";
import type { DemuxerOptions, TrackFormat, TrackKind } from "../../samples.ts";

/** A track as its init section (`moov`) describes it. */
export interface InitTrack {
  id: number;
  /** One per sample entry, in their order; at least one. */
  formats: readonly TrackFormat[];
  /** Presentation time = media time − this, ticks (edit list). */
  shiftTicks: number;
  defaults: SampleDefaults;
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
 * Reads the first track of each kind from a `moov` box.
 * @throws ServiceError `upstream_invalid`; `drm_protected` if one of them is encrypted (§8.12).
 */
export function readInit(
  bytes: Uint8Array,
  moov: Box,
  kinds: readonly TrackKind[],
  onLeft?: DemuxerOptions["onLeft"],
): InitTrack[] {
  const view = viewOf(bytes);
  const movie = readMovie(bytes, moov);
  const tracks = new Map<TrackKind, InitTrack>();
  let audioTracks = 0;
  for (const trak of boxesIn(view, moov.body, moov.end)) {
    if (trak.type !== "trak") continue;
    const kind = kindOf(view, getChild(view, trak, "mdia"));
    if (kind === "audio" && kinds.includes(kind)) audioTracks += 1;
    if (kind === null || !kinds.includes(kind) || tracks.has(kind)) continue;
    tracks.set(kind, readTrack(bytes, trak, kind, movie));
  }
  if (audioTracks > 1) onLeft?.(audioTracks - 1);
  return [...tracks.values()];
}

/**
 * Reads all video and audio tracks from a `moov` box.
 * @throws as `readInit`
 */
export function readAllTracks(bytes: Uint8Array, moov: Box): InitTrack[] {
  const view = viewOf(bytes);
  const movie = readMovie(bytes, moov);
  return [...boxesIn(view, moov.body, moov.end)].flatMap((trak) => {
    const kind = trak.type === "trak" ? kindOf(view, getChild(view, trak, "mdia")) : null;
    return kind === null ? [] : [readTrack(bytes, trak, kind, movie)];
  });
}

function readMovie(bytes: Uint8Array, moov: Box): Movie {
  const view = viewOf(bytes);
  return {
    ...readMovieHeader(bytes, getChild(view, moov, "mvhd")),
    isFragmented: findChild(view, moov, "mvex") !== undefined,
    defaults: readDefaults(bytes, moov),
  };
}

type Movie = MovieHeader & { isFragmented: boolean; defaults: ReadonlyMap<number, SampleDefaults> };

/** Reads the `trex` boxes; the keys are track ids. */
function readDefaults(bytes: Uint8Array, moov: Box): Map<number, SampleDefaults> {
  const view = viewOf(bytes);
  const mvex = findChild(view, moov, "mvex");
  const defaults = new Map<number, SampleDefaults>();
  for (const trex of mvex === undefined ? [] : boxesIn(view, mvex.body, mvex.end)) {
    if (trex.type !== "trex") continue;
    const reader = createBoxReader(bytes, trex);
    reader.versionAndFlags();
    const id = reader.u32();
    const [entry, duration, size] = [reader.u32(), reader.u32(), reader.u32()];
    defaults.set(id, { entry, duration, size, flags: reader.u32() });
  }
  return defaults;
}

function kindOf(view: DataView, mdia: Box): TrackKind | null {
  const hdlr = getChild(view, mdia, "hdlr");
  if (hdlr.end - hdlr.body < 12) throw damagedError(`"hdlr" is too short`);
  const handler = typeAt(view, hdlr.body + 8);
  return handler === "vide" ? "video" : handler === "soun" ? "audio" : null;
}

function readTrack(bytes: Uint8Array, trak: Box, kind: TrackKind, movie: Movie): InitTrack {
  const view = viewOf(bytes);
  const header = readTrackHeader(bytes, getChild(view, trak, "tkhd"));
  const { id, width, height } = header;
  const matrix = multiplyMatrices(header.matrix, movie.matrix);
  const mdia = getChild(view, trak, "mdia");
  const { timescale, language } = readMediaHeader(bytes, getChild(view, mdia, "mdhd"));
  const tables = getChild(view, getChild(view, mdia, "minf"), "stbl");
  const { shiftTicks, edits } = readEdits(bytes, trak, timescale / movie.timescale);
  const shown = {
    ...(kind === "video" && !isUnity(matrix) && { matrix }),
    // Of fragments only the start is cut: the list is written before their number is known.
    ...(!movie.isFragmented && edits.length > 0 && { edits }),
  };
  const formats = readSampleEntries(bytes, getChild(view, tables, "stsd")).map((sampleEntry) => {
    const size = kind === "audio" ? { width: 0, height: 0 } : { width, height };
    const coded = kind === "video" && width === 0 ? readCodedSize(sampleEntry) : undefined;
    return { kind, timescale, sampleEntry, language, ...(coded ?? size), ...shown };
  });
  return { id, formats, shiftTicks, defaults: movie.defaults.get(id) ?? noDefaults, tables };
}

function readSampleEntries(bytes: Uint8Array, stsd: Box): Uint8Array[] {
  const view = viewOf(bytes);
  if (stsd.end - stsd.body < 8) throw damagedError(`"stsd" is too short`);
  const entries = [...boxesIn(view, stsd.body + 8, stsd.end)];
  const encrypted = entries.find(({ type }) => type === "encv" || type === "enca");
  if (encrypted !== undefined) throw new ServiceError("drm_protected", `the media are encrypted ("${encrypted.type}")`);
  if (entries.length === 0) throw damagedError("a track has no sample entry");
  // Copied: the memory of a segment is used again for the next one.
  return entries.map(({ start, end }) => Uint8Array.from(bytes.subarray(start, end)));
}
