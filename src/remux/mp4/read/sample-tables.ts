import { type BoxReader, openFullBox, openHalfBytes, openRunLengths } from "../box-reader.ts";
import { damagedError, findChild } from "../boxes.ts";
import type { AudioPacket } from "../sample-entry.ts";
import { openSampleGroups } from "../sample-groups.ts";
import { type Budget, type IndexedSample, spend } from "./indexed-sample.ts";
import { type InitTrack, secondsOf } from "./init.ts";

/**
 * Yields the samples in the tables of `tracks` (ISO/IEC 14496-12 §8.6, §8.7), those of all tracks
 * together in the order of their decode times; none if all samples are in fragments. Their offsets count
 * from the start of the file. Reads the tables as it goes: memory does not grow with them.
 * @param bytes The buffer that the boxes in `tracks` point into.
 * @throws ServiceError `upstream_invalid`.
 */
export function* readSampleTables(
  bytes: Uint8Array,
  tracks: readonly InitTrack[],
  budget: Budget,
): Generator<IndexedSample, undefined> {
  const queues = tracks.map((track) => {
    const samples = readTrackTables(bytes, track, budget);
    return { samples, next: samples.next().value };
  });
  for (;;) {
    let first: { queue: (typeof queues)[number]; sample: IndexedSample; decodeS: number } | undefined;
    for (const queue of queues) {
      const { next: sample } = queue;
      if (sample === undefined) continue;
      const decodeS = secondsOf(sample.track, sample.dts);
      if (first === undefined || decodeS < first.decodeS) first = { queue, sample, decodeS };
    }
    if (first === undefined) return;
    yield first.sample;
    first.queue.next = first.queue.samples.next().value;
  }
}

/** What sample tables of a track are read with. */
type TableTrack = Pick<InitTrack, "tables" | "groups" | "packet">;

/** Yields the samples in the tables of one track, of any kind, as `readSampleTables`. */
export function* readTrackTables<Track extends TableTrack>(
  bytes: Uint8Array,
  track: Track,
  budget: Budget,
): Generator<IndexedSample<Track>, undefined> {
  const table = (...types: string[]): Table | undefined => openTable(bytes, track, types);
  const { count, nextSize, together, isPcm } = openSizes(table("stsz", "stz2"), track.packet);
  if (count === 0) return;
  const nextDuration = openNumbers(table("stts"));
  const nextComposition = openNumbers(table("ctts"));
  const nextGroups = openSampleGroups(bytes, track.tables, track.groups);
  const areAlike = nextGroups === undefined && table("stss") === undefined && table("ctts") === undefined;
  const most = isPcm && areAlike ? joinedSamples : 1;
  if (most === 1) spend(budget, count, 0);
  const syncs = readSyncs(table("stss"), count);
  let number = 0;
  let dts = 0;
  const chunks = openChunks(table("stsc"), table("stco", "co64"), together);
  while (chunks.next()) {
    let { offset } = chunks;
    for (let left = Math.min(chunks.samples, count - number); left > 0;) {
      const { samples, ticks } = joinDurations(nextDuration, Math.min(left, most));
      const size = nextSize() * samples;
      const duration = ticks * together;
      const pts = dts + (nextComposition() | 0);
      const isSync = syncs === null || syncs[number] === 1;
      spend(budget, most === 1 ? 0 : 1, size);
      const sample: IndexedSample<Track> = { track, entry: chunks.entry, offset, size, dts, pts, duration, isSync };
      const groups = nextGroups?.();
      if (groups !== undefined) sample.groups = groups;
      yield sample;
      offset += size;
      dts += duration;
      number += samples;
      left -= samples;
    }
    if (number === count) return;
  }
  throw damagedError(`only ${number} of ${count} samples are in chunks`);
}

/**
 * How many samples of PCM are read as one, which are as many ticks: a file has tens of thousands of them a second, and each that is read takes
 * time and memory. Few, as cuts of audio are at whole ones.
 */
const joinedSamples = 128;

/** Reads the durations of samples that are read as one, at most `most`; all but the last one last equally long. */
function joinDurations(next: () => number, most: number): { samples: number; ticks: number } {
  const first = next();
  let [samples, ticks] = [1, first];
  for (let last = first; last === first && samples < most && ticks < joinedSamples; samples++) {
    last = next();
    ticks += last;
  }
  return { samples, ticks };
}

/** Where samples of one entry are in the file, in their order. */
export interface SamplePlaces {
  /** Number of their sample entry, from 1. */
  entry: number;
  count: number;
  /** The first `count` of each are theirs. */
  offsets: Float64Array;
  sizes: Uint32Array;
}

const placesAtOnce = 1024;

/**
 * Yields where the samples of a track are by its tables, as `readSampleTables`, which reads all that they say. What it yields is
 * valid until the next.
 * @throws ServiceError `upstream_invalid`.
 */
export function* readSamplePlaces(
  bytes: Uint8Array,
  track: InitTrack,
  budget: Budget,
): Generator<SamplePlaces, undefined> {
  const table = (...types: string[]): Table | undefined => openTable(bytes, track, types);
  const { count, nextSize, together, isPcm } = openSizes(table("stsz", "stz2"), track.packet);
  if (count === 0) return;
  const most = isPcm ? joinedSamples : 1;
  spend(budget, Math.ceil(count / most), 0);
  const offsets = new Float64Array(placesAtOnce);
  const sizes = new Uint32Array(placesAtOnce);
  const places = { entry: 1, count: 0, offsets, sizes };
  const chunks = openChunks(table("stsc"), table("stco", "co64"), together);
  for (let number = 0; number < count && chunks.next();) {
    let { offset } = chunks;
    for (let left = Math.min(chunks.samples, count - number); left > 0;) {
      if (places.count === placesAtOnce || places.entry !== chunks.entry) {
        yield places;
        places.count = 0;
        places.entry = chunks.entry;
      }
      const samples = Math.min(left, most);
      const size = nextSize() * samples;
      offsets[places.count] = offset;
      sizes[places.count++] = size;
      offset += size;
      number += samples;
      left -= samples;
    }
  }
  yield places;
}

interface Table {
  type: string;
  /** Right after version and flags. */
  reader: BoxReader;
}

/** Returns the first box of one of these types among the track's tables. */
function openTable(bytes: Uint8Array, { tables }: TableTrack, types: string[]): Table | undefined {
  for (const type of types) {
    const found = findChild(bytes, tables, type);
    if (found !== undefined) return { type, reader: openFullBox(bytes, found) };
  }
  return undefined;
}

interface Sizes {
  count: number;
  nextSize: () => number;
  /** How many samples of the tables count as one. */
  together: number;
  /** They are PCM of one size. */
  isPcm: boolean;
}

/**
 * `stsz` (§8.7.3.2): one size for all samples, or one each; `stz2` (§8.7.3.3): sizes of 4, 8 or 16 bits. QuickTime also writes a size of 1
 * for each sample of audio whose size is in the sample entry: those of a packet count as one sample then.
 */
function openSizes(table: Table | undefined, packet: AudioPacket | undefined): Sizes {
  const each = { together: 1, isPcm: false };
  if (table === undefined) return { count: 0, nextSize: () => 0, ...each };
  const { type, reader } = table;
  const first = reader.u32();
  const count = reader.u32();
  const isCompact = type === "stz2";
  const bits = isCompact ? first & 0xff : first === 0 ? 32 : 0;
  if (isCompact && ![4, 8, 16].includes(bits)) throw damagedError(`"stz2" has sizes of ${bits} bits`);
  if (Math.ceil((count * bits) / 8) > reader.left) throw damagedError(`"${type}" is too short for ${count} sizes`);
  if (bits === 0 && first === 1 && packet !== undefined) {
    const { samples, bytes, isPcm } = packet;
    return { count: Math.floor(count / samples), nextSize: () => bytes, together: samples, isPcm };
  }
  if (bits === 0) return { count, nextSize: () => first, ...each, isPcm: packet?.isPcm ?? false };
  if (bits === 4) return { count, nextSize: openHalfBytes(reader), ...each };
  return { count, nextSize: bits === 8 ? reader.u8 : bits === 16 ? reader.u16 : reader.u32, ...each };
}

/** `stts` and `ctts` (§8.6.1): counts and numbers in turn. */
function openNumbers(table: Table | undefined): () => number {
  return table === undefined ? () => 0 : openRunLengths(table.reader, table.reader.u32(), 0);
}

/** Reads `stss`: 1 for each sync sample; `null`: all are. */
function readSyncs(table: Table | undefined, samples: number): Uint8Array | null {
  if (table === undefined) return null;
  const syncs = new Uint8Array(samples);
  const count = table.reader.u32();
  if (count * 4 > table.reader.left) throw damagedError(`"stss" is too short for ${count} numbers`);
  for (let left = count; left > 0; left--) syncs[table.reader.u32() - 1] = 1;
  return syncs;
}

/** A chunk of samples, one after the other. */
interface SampleChunks {
  offset: number;
  /** Number of the sample entry, from 1. */
  entry: number;
  samples: number;
  /** Reads the next chunk; returns whether there is one. */
  next(): boolean;
}

/**
 * Opens the chunks of a track in `stsc` and `stco` or `co64` (§8.7.4, §8.7.5), before the first one.
 * @param together How many samples count as one.
 */
function openChunks(runs: Table | undefined, offsets: Table | undefined, together: number): SampleChunks {
  if (runs === undefined || offsets === undefined) throw damagedError("samples have no chunks");
  let runsLeft = runs.reader.u32();
  let nextRun = runsLeft > 0 ? runs.reader.u32() : Infinity;
  const count = offsets.reader.u32();
  const readOffset = offsets.type === "co64" ? offsets.reader.i64 : offsets.reader.u32;
  let number = 0;
  return {
    offset: 0,
    entry: 1,
    samples: 0,
    next() {
      if (number >= count) return false;
      number += 1;
      while (number >= nextRun) {
        this.samples = Math.ceil(runs.reader.u32() / together);
        this.entry = runs.reader.u32();
        nextRun = --runsLeft > 0 ? runs.reader.u32() : Infinity;
      }
      this.offset = readOffset();
      return true;
    },
  };
}
