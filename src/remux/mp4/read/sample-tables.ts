import { type BoxReader, createBoxReader } from "../box-reader.ts";
import { childOf, damaged, viewOf } from "../boxes.ts";
import type { InitTrack } from "./init.ts";
import { type Budget, type PlacedSample, spend } from "./trun.ts";

/**
 * The samples that the tables in `moov` name (ISO/IEC 14496-12 §8.6, §8.7), track by track; none where
 * all are in fragments. Their places are those in the whole file.
 */
export function readTables(
  moovPiece: Uint8Array,
  tracks: readonly InitTrack[],
  budget: Budget,
): PlacedSample[] {
  return tracks.flatMap((track) => readTrackTables(moovPiece, track, budget));
}

function readTrackTables(piece: Uint8Array, track: InitTrack, budget: Budget): PlacedSample[] {
  const table = (...types: string[]): Table | undefined => openTable(piece, track, types);
  const sizes = readSizes(table("stsz"), budget);
  if (sizes.length === 0) return [];
  const durations = expand(table("stts"), sizes.length);
  const compositions = expand(table("ctts"), sizes.length);
  const syncs = readSyncs(table("stss"));
  const samples: PlacedSample[] = [];
  let dts = 0;
  for (const { start, entry, count } of chunksOf(table("stsc"), table("stco", "co64"))) {
    let at = start;
    for (let left = count; left > 0 && samples.length < sizes.length; left--) {
      const i = samples.length;
      const [size, duration] = [sizes[i]!, durations[i]!];
      const pts = dts + (compositions[i]! | 0);
      const isSync = syncs === null || syncs.has(i + 1);
      samples.push({ track, entry, start: at, size, dts, pts, duration, isSync });
      at += size;
      dts += duration;
    }
  }
  if (samples.length < sizes.length) throw damaged(`only ${samples.length} samples are in chunks`);
  return samples;
}

interface Table {
  type: string;
  reader: BoxReader;
}

/** The first box of one of these types among the track's tables. */
function openTable(piece: Uint8Array, { tables }: InitTrack, types: string[]): Table | undefined {
  for (const type of types) {
    const found = childOf(viewOf(piece), tables, type);
    if (found === undefined) continue;
    const reader = createBoxReader(piece, found);
    reader.versionAndFlags();
    return { type, reader };
  }
  return undefined;
}

function readSizes(table: Table | undefined, budget: Budget): Uint32Array {
  if (table === undefined) return new Uint32Array(0);
  const { reader } = table;
  const size = reader.u32();
  const count = reader.u32();
  if (size === 0 && count * 4 > reader.left)
    throw damaged(`"stsz" is too short for ${count} sizes`);
  spend(budget, count, size * count);
  const sizes = new Uint32Array(count).fill(size);
  if (size === 0) for (let i = 0; i < count; i++) sizes[i] = reader.u32();
  if (size === 0) for (const one of sizes) spend(budget, 0, one);
  return sizes;
}

/** Pairs of count and number, number by number; 0 where they end. */
function expand(table: Table | undefined, count: number): Uint32Array {
  const numbers = new Uint32Array(count);
  if (table === undefined) return numbers;
  const { reader } = table;
  let at = 0;
  for (let left = reader.u32(); left > 0 && at < count; left--) {
    const end = Math.min(count, at + reader.u32());
    numbers.fill(reader.u32(), at, end);
    at = end;
  }
  return numbers;
}

/** `null`: every sample is one. */
function readSyncs(table: Table | undefined): ReadonlySet<number> | null {
  if (table === undefined) return null;
  const syncs = new Set<number>();
  const count = table.reader.u32();
  if (count * 4 > table.reader.left) throw damaged(`"stss" is too short for ${count} numbers`);
  for (let left = count; left > 0; left--) syncs.add(table.reader.u32());
  return syncs;
}

interface Chunk {
  start: number;
  entry: number;
  /** Samples in it. */
  count: number;
}

function* chunksOf(runs: Table | undefined, places: Table | undefined): Generator<Chunk> {
  if (runs === undefined || places === undefined) throw damaged("samples have no chunks");
  let runsLeft = runs.reader.u32();
  let chunk = { start: 0, entry: 1, count: 0 };
  let nextRun = runsLeft > 0 ? runs.reader.u32() : Infinity;
  const chunks = places.reader.u32();
  for (let number = 1; number <= chunks; number++) {
    while (number >= nextRun) {
      const [count, entry] = [runs.reader.u32(), runs.reader.u32()];
      chunk = { ...chunk, count, entry };
      nextRun = --runsLeft > 0 ? runs.reader.u32() : Infinity;
    }
    const start = places.type === "co64" ? places.reader.i64() : places.reader.u32();
    yield { ...chunk, start };
  }
}
