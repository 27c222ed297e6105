import { type Box, damagedError } from "../boxes.ts";
import { isProtected } from "../sample-entry.ts";
import type { TrackKind } from "../../samples.ts";
import { kindByHandler } from "./headers.ts";
import { boxAt, childBoxes, codeAt, type NumberSource } from "./number-source.ts";

/** Boxes that readers descend into, wherever they are. */
const containers = new Set("moov trak mdia minf dinf stbl moof traf mvex".split(" "));

/** Tables by what they list; a track has one of each kind. */
const kinds = new Map([
  ["stsz", "sizes"],
  ["stz2", "sizes"],
  ["stts", "durations"],
  ["ctts", "compositions"],
  ["stss", "syncs"],
  ["stsc", "runs"],
  ["stco", "chunks"],
  ["co64", "chunks"],
] as const);

/** A day of one-second fragments of two tracks. */
const maxBoxes = 1 << 21;

/** As many as are read of one segment: 6 hours of AAC. */
const maxFragmentSamples = 1 << 20;

/**
 * Checks what an MP4 says about its samples against its size, so that a few bytes cannot make a reader count
 * to four billion: sample tables (ISO/IEC 14496-12 §8.6, §8.7) of audio and video tracks, and track runs
 * (§8.8.8). Time and memory: the boxes' bytes are read once, through small windows.
 *
 * @param source The file, or a segment of complete boxes.
 * @param end Where the boxes end that are there; default: all are.
 * @throws ServiceError `upstream_invalid` if they contradict each other or the size.
 */
export function checkSampleTables(source: NumberSource, end = source.size): void {
  let track: (TrackTables & { isMedia: boolean }) | undefined;
  let samples = 0;
  let fragmentSamples = 0;
  const listed = { samples: 0, bytes: 0 };
  const checkTrack = () => {
    if (!track?.isMedia) return;
    const { count, bytes } = checkTrackTables(source, track);
    listed.samples += count;
    listed.bytes += bytes;
  };
  for (const { box, parent } of boxesWithin(source, end)) {
    const kind = kinds.get(box.type as never);
    if (box.type === "trak") {
      checkTrack();
      track = { isMedia: false };
    } else if (box.type === "hdlr" && track !== undefined) {
      track.isMedia ||= kindOfHandler(source, box) !== null;
    } else if (kind !== undefined && track !== undefined) {
      if (parent !== "stbl") throw damagedError(`"${box.type}" is in "${parent}"`);
      if (track[kind] !== undefined) throw damagedError(`a track has two tables of ${kind}`);
      track[kind] = box;
    } else if (box.type === "moof") {
      fragmentSamples = 0;
    } else if (box.type === "trun") {
      const count = countRun(source, box);
      fragmentSamples += count;
      samples += count;
      if (fragmentSamples > maxFragmentSamples) throw damagedError(`a fragment has over ${maxFragmentSamples} samples`);
      if (samples > source.size) throw damagedError(`${source.size} bytes have over ${samples} samples`);
    }
  }
  checkTrack();
  if (listed.samples > 0 && listed.bytes === 0 && samples === 0) {
    throw damagedError(`its ${listed.samples} samples have no bytes`);
  }
}

/** Returns the types of sample entries in an MP4 that say that their audio or video tracks are encrypted. @throws as `checkSampleTables` */
export function findProtectedEntries(source: NumberSource): { kind: TrackKind; entry: string }[] {
  const found: { kind: TrackKind; entry: string }[] = [];
  let kind: TrackKind | null = null;
  for (const { box } of boxesWithin(source, source.size)) {
    if (box.type === "trak") kind = null;
    if (box.type === "hdlr") kind ??= kindOfHandler(source, box);
    if (box.type !== "stsd" || kind === null) continue;
    const entry = childBoxes(source, { body: box.body + 8, end: box.end }).find(({ type }) => isProtected(type))?.type;
    if (entry !== undefined) found.push({ kind, entry });
  }
  return found;
}

/** Yields all boxes in `containers`, parents first, without recursion. */
function* boxesWithin(source: NumberSource, end: number): Generator<{ box: Box; parent: string }> {
  const open = [{ type: "file", next: 0, end }];
  let count = 0;
  for (let parent = open.at(-1); parent !== undefined; parent = open.at(-1)) {
    const box = boxAt(source, parent.next, parent.end);
    // Bytes after the last box of a file are allowed; see `isCompleteMp4`.
    if (box === undefined && parent.type !== "file" && parent.end - parent.next >= 8) {
      throw damagedError(`a box in "${parent.type}" is longer than it`);
    }
    if (box === undefined) {
      open.pop();
      continue;
    }
    if (++count > maxBoxes) throw damagedError(`it has over ${maxBoxes} boxes`);
    parent.next = box.end;
    yield { box, parent: parent.type };
    if (containers.has(box.type)) open.push({ type: box.type, next: box.body, end: box.end });
  }
}

function kindOfHandler(source: NumberSource, { body, end }: Box): TrackKind | null {
  return end - body < 12 ? null : kindByHandler(codeAt(source, body + 8));
}

/** Returns the number of samples in a `trun`, whose fields must fit in it. */
function countRun(source: NumberSource, { body, end }: Box): number {
  if (end - body < 8) throw damagedError(`"trun" is too short`);
  const flags = source.u32(body);
  const count = source.u32(body + 4);
  const fields = [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag).length;
  if (count * fields * 4 > end - body - 8) throw damagedError(`"trun" is too short for ${count} samples`);
  return count;
}

/** The boxes that index the samples of a track. */
type TrackTables = Partial<Record<"sizes" | "durations" | "compositions" | "syncs" | "runs" | "chunks", Box>>;

/** Of a track whose samples differ in size or composition; 77 hours of 60 frames a second. */
const maxSamples = 1 << 24;

/** Some muxers write durations of a few samples, or runs of a few chunks, more than there are. */
const maxExcess = 1_000;

/**
 * Checks the tables of one track against each other and the size of `source`. Returns how many samples they list, of how many bytes.
 * @throws ServiceError `upstream_invalid`.
 */
function checkTrackTables(source: NumberSource, tables: TrackTables): { count: number; bytes: number } {
  const sizes = openSizes(source, tables.sizes);
  const isPlain = sizes.size !== null && tables.compositions === undefined;
  if (!isPlain && sizes.count > maxSamples) {
    throw damagedError(`a track has ${sizes.count} samples, the limit is ${maxSamples}`);
  }
  checkRunLengths(source, tables.durations, sizes.count);
  checkRunLengths(source, tables.compositions, sizes.count);
  countEntries(source, tables.syncs, 4);
  return { count: sizes.count, bytes: checkChunks(source, tables, sizes) };
}

interface Sizes {
  count: number;
  /** The size of all samples; `null`: each has its own. */
  size: number | null;
  next(): number;
}

/** `stsz` or `stz2` (ISO/IEC 14496-12 §8.7.3). */
function openSizes(source: NumberSource, box: Box | undefined): Sizes {
  if (box === undefined) return { count: 0, size: 0, next: () => 0 };
  const { type, body, end } = box;
  if (end - body < 12) throw damagedError(`"${type}" is too short`);
  const count = source.u32(body + 8);
  const size = type === "stsz" ? source.u32(body + 4) : 0;
  if (size > 0) {
    if (count * size > source.size) throw damagedError(`${source.size} bytes have ${count} samples of ${size} bytes`);
    return { count, size, next: () => size };
  }
  const bits = type === "stsz" ? 32 : source.u8(body + 7);
  if (![4, 8, 16, 32].includes(bits)) throw damagedError(`"${type}" has sizes of ${bits} bits`);
  if ((count * bits) / 8 > end - body - 12) throw damagedError(`"${type}" is too short for ${count} sizes`);
  const reader = source.openTable();
  let number = 0;
  return {
    count,
    size: null,
    next() {
      const at = body + 12 + Math.floor((number * bits) / 8);
      const isLow = number++ % 2 === 1;
      if (bits === 32) return reader.u32(at);
      if (bits === 16) return reader.u16(at);
      return bits === 8 ? reader.u8(at) : isLow ? reader.u8(at) & 15 : reader.u8(at) >> 4;
    },
  };
}

/** `stts` and `ctts` (§8.6.1): pairs of a count and a value. */
function checkRunLengths(source: NumberSource, box: Box | undefined, samples: number): void {
  const entries = countEntries(source, box, 8);
  const reader = source.openTable();
  let sum = 0;
  for (let i = 0; i < entries; i++) sum += reader.u32(box!.body + 8 + 8 * i);
  if (sum > samples + maxExcess) throw damagedError(`"${box?.type}" is for ${sum} samples, the track has ${samples}`);
}

/** Returns the number of entries of a table, which must fit in it; 0 without a table. */
function countEntries(source: NumberSource, box: Box | undefined, entryBytes: number): number {
  if (box === undefined) return 0;
  const { type, body, end } = box;
  if (end - body < 8) throw damagedError(`"${type}" is too short`);
  const entries = source.u32(body + 4);
  if (entries * entryBytes > end - body - 8) throw damagedError(`"${type}" is too short for ${entries} entries`);
  return entries;
}

/** `stsc` with `stco` or `co64` (§8.7.4, §8.7.5): every sample is in a chunk, and within `source`. Returns how many bytes they have. */
function checkChunks(source: NumberSource, { runs, chunks: offsets }: TrackTables, sizes: Sizes): number {
  const entryBytes = offsets?.type === "co64" ? 8 : 4;
  const chunks = countEntries(source, offsets, entryBytes);
  const entries = countEntries(source, runs, 12);
  const [offsetReader, runReader] = [source.openTable(), source.openTable()];
  const firstChunk = (entry: number) => (entry < entries ? runReader.u32(runs!.body + 8 + 12 * entry) : chunks + 1);
  let left = sizes.count;
  let bytes = 0;
  for (let entry = 0; entry < entries; entry++) {
    const first = firstChunk(entry);
    const after = firstChunk(entry + 1);
    if (first === 0 || first > chunks + maxExcess || (entry + 1 < entries && after <= first)) {
      throw damagedError(`"stsc" leads to chunk ${first}, and there are ${chunks}`);
    }
    const next = Math.min(after, chunks + 1);
    const perChunk = runReader.u32(runs!.body + 8 + 12 * entry + 4);
    for (let chunk = first; chunk < next && left > 0; chunk++) {
      const at = offsets!.body + 8 + entryBytes * (chunk - 1);
      const high = entryBytes === 8 ? offsetReader.u32(at) : 0;
      const start = high * 2 ** 32 + offsetReader.u32(at + entryBytes - 4);
      const count = Math.min(perChunk, left);
      const chunkBytes = sumSizes(sizes, count);
      const end = start + chunkBytes;
      left -= count;
      bytes += chunkBytes;
      if (end > source.size) throw damagedError(`chunk ${chunk} ends at ${end} of ${source.size} bytes`);
    }
  }
  if (left > 0) throw damagedError(`${left} of ${sizes.count} samples are in no chunk`);
  return bytes;
}

function sumSizes({ size, next }: Sizes, count: number): number {
  if (size !== null) return count * size;
  let sum = 0;
  for (let i = 0; i < count; i++) sum += next();
  return sum;
}
