import { ascii, box, fullBox, u32, u64, viewOf } from "../boxes.ts";
import { indexBoxes, movieTimescale, noDefaultsBox } from "./index-boxes.ts";
import type { ChunkReader, TrackChunk } from "./chunk-reader.ts";
import type { TrackIndex } from "./track.ts";

/** Media data with the boxes that go in front of them in a stream; the first one has no media data. */
export interface Fragment {
  head: Uint8Array;
  /** Where the media data are, and how many they are, bytes. */
  offset: number;
  bytes: number;
}

/** More would make a head of over 256 KiB: players expect fewer than a thousand. */
const maxSamples = 1 << 14;

/** Heads that are made at once have little more than this. */
const maxHeadBytes = 1 << 20;

/** A track as the boxes at the start of the stream describe it. */
interface StreamTrack {
  id: number;
  entries: number;
  /** Composition offset that becomes 0. */
  base: number;
}

interface FragmentSource {
  /** What the index has of a track so far; undefined: nothing. */
  index: TrackIndex | undefined;
  chunks: ChunkReader;
}

interface SentTrack extends FragmentSource {
  /** Its first chunk, if that was read and not sent. */
  first?: TrackChunk | undefined;
  about?: StreamTrack;
}

/**
 * Makes fragments (ISO/IEC 14496-12 §8.8) of the chunks of a file that is being written: the same samples with the same times,
 * in the order of the file.
 */
export class Fragments {
  readonly #tracks: readonly SentTrack[];
  readonly #expectedS: number | null;
  #hasStarted = false;
  #sequence = 0;
  #isBroken: boolean;

  /**
   * Of all tracks that there will be.
   *
   * @param expectedS How long the presentation is likely to last, seconds, which players show; `null`: unknown.
   */
  constructor(sources: readonly FragmentSource[], expectedS: number | null) {
    this.#tracks = sources.map((source) => ({ ...source }));
    this.#expectedS = expectedS;
    const described = this.#described;
    const isBroken = ({ parts, format: { edits = [] } }: TrackIndex) => parts.length > 1 || edits.length > 1;
    this.#isBroken = described.length === 0 || described.some(({ index }) => isBroken(index));
  }

  /** The rest of the file cannot be expressed in fragments that continue those so far. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  get trackCount(): number {
    return this.#tracks.length;
  }

  get #described() {
    return this.#tracks.flatMap((track) => (track.index === undefined ? [] : { track, index: track.index }));
  }

  /** Returns the next fragments, about 1 MiB of heads; none if there are none yet. */
  take(): Fragment[] {
    if (this.#isBroken) return [];
    const made = this.#hasStarted ? [] : this.#start();
    if (!this.#hasStarted) return [];
    for (let bytes = 0; bytes < maxHeadBytes;) {
      const fragment = this.#next();
      if (fragment === undefined) break;
      made.push(fragment);
      bytes += fragment.head.length;
    }
    return made;
  }

  /** Returns the start, once there is a chunk of each track; else nothing. */
  #start(): Fragment[] {
    const starts = this.#described.map(({ track, index }, n) => {
      track.first ??= track.chunks.next();
      if (track.first === undefined) return undefined;
      track.about = { id: n + 1, entries: index.sampleEntries.length, base: baseOf(index, track.first) };
      return { index, base: track.about.base };
    });
    if (!starts.every((start) => start !== undefined)) return [];
    this.#hasStarted = true;
    return [{ head: startBoxes(starts, this.#expectedS), offset: 0, bytes: 0 }];
  }

  #next(): Fragment | undefined {
    const offsetOf = ({ first, chunks }: SentTrack) => (first ?? chunks).offset ?? Infinity;
    const next = this.#tracks.reduce((least, track) => (offsetOf(track) < offsetOf(least) ? track : least));
    const chunk = this.#isBroken ? undefined : (next.first ?? next.chunks.next());
    if (chunk === undefined) return undefined;
    next.first = undefined;
    const { about } = next;
    const isKnown = about !== undefined && chunk.entry <= about.entries && chunk.samples.length <= maxSamples;
    this.#isBroken = !isKnown;
    if (!isKnown) return undefined;
    this.#sequence += 1;
    const { offset, bytes } = chunk;
    return { head: fragmentHead(about, chunk, this.#sequence), offset, bytes };
  }
}

/**
 * Returns the composition offset that becomes 0. No media time may be below 0, as that of a frame would be that is presented before the
 * first one. Offsets should not be negative either: FFmpeg and Chromium delay all pictures by the largest such, but not the audio. It must
 * not depend on when the stream begins, as later runs make the same fragments: so what follows the first chunk does not count.
 */
function baseOf({ parts, firstTicks }: TrackIndex, { samples }: TrackChunk): number {
  return samples.reduce(
    (least, sample) => Math.min(least, sample.composition),
    Math.min(0, parts[0]!.startTicks - firstTicks),
  );
}

/** A first picture that is hidden lasts a tick. A stream shows it, as FFmpeg does not know edits in streams that begin later. */
function hiddenTicks({ parts, firstTicks, firstComposition }: TrackIndex): number {
  return parts[0]!.startTicks - firstTicks - firstComposition === 1 ? 1 : 0;
}

/** Returns `ftyp` and a `moov` without samples (§8.8.1), which states the duration of all fragments if that is known (§8.8.2). */
function startBoxes(tracks: readonly { index: TrackIndex; base: number }[], expectedS: number | null): Uint8Array {
  const empty = new Uint32Array();
  const tables = { sizes: empty, syncs: empty, durations: empty, compositions: empty, chunkRuns: empty };
  const described = tracks.map(({ index: track, base }) => {
    const parts = track.parts.map((part) => {
      const startTicks = part.startTicks - hiddenTicks(track);
      const mediaTicks = startTicks - track.firstTicks - base;
      return { startTicks, endTicks: startTicks, mediaTicks, isCut: false };
    });
    return { ...track, ...tables, groups: [], chunks: [], mediaTicks: 0, parts };
  });
  const defaults = described.map((_, index) => noDefaultsBox(index + 1));
  const duration = expectedS === null ? [] : [fullBox("mehd", 1, 0, u64(Math.round(expectedS * movieTimescale)))];
  return indexBoxes(described, { start: 0, size: 0 }, { texts: [], userData: [box("mvex", ...duration, ...defaults)] });
}

const syncFlags = 0x2000000;
/** It depends on others, and is no sync sample (§8.8.3.1). */
const otherFlags = 0x1010000;
/** Of `tfhd`: data offsets count from the start of the `moof`; it states the sample entry. */
const fragmentFlags = 0x20002;
/** Of `trun`: data offset, and for each sample duration, size, flags and composition offset. */
const runFlags = 0xf01;

/** Returns a `moof` (§8.8.4) and the header of the media data after it. */
function fragmentHead({ id, base }: StreamTrack, chunk: TrackChunk, sequence: number): Uint8Array {
  const { samples, bytes, entry, startTicks } = chunk;
  const run = Buffer.allocUnsafe(16 * samples.length);
  for (const [index, { bytes: size, ticks, composition, isSync }] of samples.entries()) {
    const at = 16 * index;
    run.writeUInt32BE(Math.min(ticks, 0xffffffff), at);
    run.writeUInt32BE(size, at + 4);
    run.writeUInt32BE(isSync ? syncFlags : otherFlags, at + 8);
    run.writeInt32BE(clamp(composition - base), at + 12);
  }
  const moof = box(
    "moof",
    fullBox("mfhd", 0, 0, u32(sequence)),
    box(
      "traf",
      fullBox("tfhd", 0, fragmentFlags, u32(id, entry)),
      fullBox("tfdt", 1, 0, u64(startTicks)),
      // Version 1: composition offsets may be negative.
      fullBox("trun", 1, runFlags, u32(samples.length, 0), run),
    ),
  );
  viewOf(moof).setUint32(moof.length - run.length - 4, moof.length + 8);
  return Buffer.concat([moof, u32(bytes + 8), ascii("mdat")]);
}

const clamp = (ticks: number): number => Math.max(-(2 ** 31), Math.min(ticks, 2 ** 31 - 1));
