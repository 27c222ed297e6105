import { ServiceError } from "../../../errors.ts";
import { createBoxReader } from "../box-reader.ts";
import { type Box, boxesIn, childOf, damaged, typeAt, viewOf } from "../boxes.ts";
import { readEditShift, readMediaHeader, readTrackHeader } from "./headers.ts";
import type { TrackFormat } from "../../samples.ts";

/** A track as its init section says it. */
export interface InitTrack {
  id: number;
  /** One for each sample entry, in their order; at least one. */
  formats: readonly TrackFormat[];
  /** Presentation time = media time − this, ticks (edit list). */
  shiftTicks: number;
  defaults: SampleDefaults;
  /** Sample tables, where the file is not, or not only, fragmented. */
  tables: Box;
}

/** What holds for samples that say nothing else (ISO/IEC 14496-12 §8.8.3). */
export interface SampleDefaults {
  /** From 1. */
  entry: number;
  duration: number;
  size: number;
  flags: number;
}

/**
 * The first track of each kind in a `moov` box.
 * @throws ServiceError `drm_protected` where one of them is encrypted (§8.12).
 */
export function readInit(
  piece: Uint8Array,
  moov: Box,
  kinds: readonly TrackFormat["kind"][],
): InitTrack[] {
  const view = viewOf(piece);
  const movieTimescale = readMediaHeader(piece, need(view, moov, "mvhd")).timescale;
  const defaults = readDefaults(piece, moov);
  const tracks = new Map<TrackFormat["kind"], InitTrack>();
  for (const trak of boxesIn(view, moov.body, moov.end)) {
    if (trak.type !== "trak") continue;
    const kind = kindOf(view, need(view, trak, "mdia"));
    if (kind === null || !kinds.includes(kind) || tracks.has(kind)) continue;
    tracks.set(kind, readTrack({ piece, trak, kind, movieTimescale, defaults }));
  }
  return [...tracks.values()];
}

/** @throws ServiceError `upstream_invalid` where `parent` has no box of `type`. */
function need(view: DataView, parent: Box, type: string): Box {
  const found = childOf(view, parent, type);
  if (found === undefined) throw damaged(`"${parent.type}" has no "${type}" in it`);
  return found;
}

function readDefaults(piece: Uint8Array, moov: Box): Map<number, SampleDefaults> {
  const view = viewOf(piece);
  const mvex = childOf(view, moov, "mvex");
  const defaults = new Map<number, SampleDefaults>();
  for (const trex of mvex === undefined ? [] : boxesIn(view, mvex.body, mvex.end)) {
    if (trex.type !== "trex") continue;
    const reader = createBoxReader(piece, trex);
    reader.versionAndFlags();
    const id = reader.u32();
    const [entry, duration, size, flags] = [0, 0, 0, 0].map(() => reader.u32());
    defaults.set(id, { entry: entry!, duration: duration!, size: size!, flags: flags! });
  }
  return defaults;
}

function kindOf(view: DataView, mdia: Box): TrackFormat["kind"] | null {
  const hdlr = need(view, mdia, "hdlr");
  if (hdlr.end - hdlr.body < 12) throw damaged(`"hdlr" is too short`);
  const handler = typeAt(view, hdlr.body + 8);
  return handler === "vide" ? "video" : handler === "soun" ? "audio" : null;
}

interface TrackPlace {
  piece: Uint8Array;
  trak: Box;
  kind: TrackFormat["kind"];
  movieTimescale: number;
  defaults: ReadonlyMap<number, SampleDefaults>;
}

function readTrack({ piece, trak, kind, movieTimescale, defaults }: TrackPlace): InitTrack {
  const view = viewOf(piece);
  const { id, width, height } = readTrackHeader(piece, need(view, trak, "tkhd"));
  const mdia = need(view, trak, "mdia");
  const { timescale, language } = readMediaHeader(piece, need(view, mdia, "mdhd"));
  const tables = need(view, need(view, mdia, "minf"), "stbl");
  const formats = readSampleEntries(piece, need(view, tables, "stsd")).map((sampleEntry) => {
    const shown = kind === "audio" ? { width: 0, height: 0 } : { width, height };
    return { kind, timescale, sampleEntry, language, ...orCoded(shown, kind, sampleEntry) };
  });
  return {
    id,
    formats,
    shiftTicks: readEditShift(piece, trak, { timescale, movieTimescale }),
    defaults: defaults.get(id) ?? { entry: 1, duration: 0, size: 0, flags: 0 },
    tables,
  };
}

function readSampleEntries(piece: Uint8Array, stsd: Box): Uint8Array[] {
  const view = viewOf(piece);
  if (stsd.end - stsd.body < 8) throw damaged(`"stsd" is too short`);
  const entries = [...boxesIn(view, stsd.body + 8, stsd.end)];
  const encrypted = entries.find(({ type }) => type === "encv" || type === "enca");
  if (encrypted !== undefined) {
    throw new ServiceError("drm_protected", `the media are encrypted ("${encrypted.type}")`);
  }
  if (entries.length === 0) throw damaged("a track has no sample entry");
  return entries.map(({ start, end }) => piece.slice(start, end));
}

/** The size in the visual sample entry (§12.1.3), where the track's own is not said. */
function orCoded(
  shown: { width: number; height: number },
  kind: TrackFormat["kind"],
  sampleEntry: Uint8Array,
): { width: number; height: number } {
  if (kind === "audio" || shown.width > 0 || sampleEntry.length < 36) return shown;
  const view = viewOf(sampleEntry);
  return { width: view.getUint16(32), height: view.getUint16(34) };
}
