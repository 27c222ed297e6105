import { createBoxReader } from "../box-reader.ts";
import { type Box, boxesIn, childOf, damaged, viewOf } from "../boxes.ts";
import type { InitTrack, SampleDefaults } from "./init.ts";
import { type Budget, type PlacedSample, type TrackRun, readTrackRun } from "./trun.ts";

export interface FragmentContext {
  /** Those that are wanted. */
  tracks: readonly InitTrack[];
  /** Where each track goes on if the fragment does not say it, ticks; is brought up to date. */
  nextDts: Map<InitTrack, number>;
  budget: Budget;
}

/**
 * The samples of a `moof` box (ISO/IEC 14496-12 §8.8), track by track.
 */
export function readFragment(
  piece: Uint8Array,
  moof: Box,
  context: FragmentContext,
): PlacedSample[] {
  const view = viewOf(piece);
  const runs: TrackRun[] = [];
  let isAbsolute = false;
  let dataEnd = moof.start;
  for (const traf of boxesIn(view, moof.body, moof.end)) {
    if (traf.type !== "traf") continue;
    const header = readFragmentHeader(piece, traf, context.tracks);
    isAbsolute ||= header.absoluteBase !== null;
    const base = header.absoluteBase ?? (header.isFromMoof ? moof.start : dataEnd);
    dataEnd = base;
    const { track } = header;
    let dts = readDecodeTime(piece, traf) ?? (track && context.nextDts.get(track)) ?? 0;
    for (const trun of boxesIn(view, traf.body, traf.end)) {
      if (trun.type !== "trun") continue;
      const run = readTrackRun(piece, trun, {
        ...header,
        base,
        dataEnd,
        dts,
        budget: context.budget,
      });
      runs.push(run);
      ({ dataEnd, dts } = run);
    }
    if (track !== undefined) context.nextDts.set(track, dts);
  }
  const samples = runs.flatMap((run) => run.samples);
  const moved = isAbsolute ? distanceToData(view, moof, runs) : 0;
  for (const sample of samples) sample.start += moved;
  return samples;
}

interface FragmentHeader {
  /** `undefined`: it is not wanted. */
  track: InitTrack | undefined;
  defaults: SampleDefaults;
  /** Place in the file that the samples' places count from. */
  absoluteBase: number | null;
  /** They count from the start of the `moof` box. */
  isFromMoof: boolean;
}

/** Reads `tfhd` (§8.8.7). */
function readFragmentHeader(
  piece: Uint8Array,
  traf: Box,
  tracks: readonly InitTrack[],
): FragmentHeader {
  const tfhd = childOf(viewOf(piece), traf, "tfhd");
  if (tfhd === undefined) throw damaged(`"traf" has no "tfhd" in it`);
  const reader = createBoxReader(piece, tfhd);
  const { flags } = reader.versionAndFlags();
  const id = reader.u32();
  const track = tracks.find((candidate) => candidate.id === id);
  const absoluteBase = flags & 0x1 ? reader.i64() : null;
  const given = track?.defaults ?? { entry: 1, duration: 0, size: 0, flags: 0 };
  const defaults = {
    entry: flags & 0x2 ? reader.u32() : given.entry,
    duration: flags & 0x8 ? reader.u32() : given.duration,
    size: flags & 0x10 ? reader.u32() : given.size,
    flags: flags & 0x20 ? reader.u32() : given.flags,
  };
  return { track, defaults, absoluteBase, isFromMoof: (flags & 0x20000) !== 0 };
}

/** Reads `tfdt` (§8.8.12), ticks; `undefined` where there is none. */
function readDecodeTime(piece: Uint8Array, traf: Box): number | undefined {
  const tfdt = childOf(viewOf(piece), traf, "tfdt");
  if (tfdt === undefined) return undefined;
  const reader = createBoxReader(piece, tfdt);
  const { version } = reader.versionAndFlags();
  return version === 1 ? reader.i64() : reader.u32();
}

/**
 * Places that count from the start of a file say nothing in a piece of it, but the first of them is
 * where the media data begin.
 */
function distanceToData(view: DataView, moof: Box, runs: readonly TrackRun[]): number {
  const starts = runs.filter(({ count }) => count > 0).map(({ start }) => start);
  if (starts.length === 0) return 0;
  for (const next of boxesIn(view, moof.end, view.byteLength)) {
    if (next.type === "mdat") return next.body - starts.reduce((a, b) => Math.min(a, b));
  }
  throw damaged(`no "mdat" follows a "moof"`);
}
