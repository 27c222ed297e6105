import { ServiceError } from "../../../model/errors.ts";
import { createGroupSets, type GroupTable, groupTables } from "../sample-groups.ts";
import { ChunkReader } from "./chunk-reader.ts";
import { createNumberList, createRunLengths } from "./number-lists.ts";
import { type PresentedPart, presentedParts } from "./presented-parts.ts";
import { type TimesIndex, TrackTimes } from "./times.ts";
import type { Edit, Sample, TrackFormat, TrackKind } from "../../samples.ts";

/** Contents of the sample tables (ISO/IEC 14496-12 §8.6, §8.7). */
export interface TrackIndex extends TimesIndex {
  format: TrackFormat;
  /** At least one, in order. */
  parts: readonly PresentedPart[];
  sampleEntries: readonly Uint8Array[];
  /** Size of each sample in bytes. */
  sizes: Uint32Array;
  /** Numbers of the sync samples, from 1. */
  syncs: Uint32Array;
  groups: readonly GroupTable[];
  /** First chunk (from 1), samples per chunk and sample entry (from 1) in turn (`stsc`). */
  chunkRuns: Uint32Array;
  /** Offsets of the chunks in the media data. */
  chunks: readonly number[];
}

/** 31 hours of 150 samples a second; each takes up to 24 bytes of memory. */
const maxSamples = 1 << 24;
const chunkBytes = 1 << 20;

/** A track of a file that is written. Its chunks have at most 1 MiB and last at most a second; a larger sample is a chunk of its own. */
export class TrackWriter {
  readonly #first: TrackFormat;
  readonly #append: (chunk: Uint8Array) => number;
  #entries = createSampleEntries();
  readonly #times: TrackTimes;
  readonly #sizes = createNumberList();
  readonly #syncs = createNumberList();
  readonly #groupSets = createGroupSets();
  /** The numbers of the samples' sets of groups. */
  readonly #groups = createRunLengths();
  readonly #chunks: number[] = [];
  readonly #chunkRuns = createNumberList();
  #lastRun = { samples: 0, entry: 0 };
  /** The open chunk. */
  #buffer: Buffer | undefined;
  #open = { bytes: 0, samples: 0, fromTicks: 0 };
  #entry: number;
  #edits: readonly Edit[] | undefined;
  #hasEnded = false;

  /** @param append Appends a chunk to the media data and returns its offset in them. */
  constructor(first: TrackFormat, append: (chunk: Uint8Array) => number) {
    this.#first = first;
    this.#append = append;
    this.#times = new TrackTimes(first.timescale, first.edits !== undefined);
    this.#entry = this.#entries.add(first.sampleEntry);
    this.#edits = first.edits;
  }

  get kind(): TrackKind {
    return this.#first.kind;
  }

  get isPresented(): boolean {
    return this.#times.isPresented;
  }

  /** See `TrackTimes`. */
  get hasHiddenTime(): boolean {
    return this.#times.hasHiddenTime;
  }

  setFormat(format: TrackFormat): void {
    const { kind, timescale, edits } = this.#first;
    if (format.kind !== kind || format.timescale !== timescale) {
      throw new TypeError("a track keeps its kind and timescale");
    }
    this.flush();
    // Some players start with the first entry, whatever the first sample has.
    if (this.#sizes.length === 0) this.#entries = createSampleEntries();
    this.#entry = this.#entries.add(format.sampleEntry);
    if (format.edits !== edits) {
      this.#edits = this.#edits?.slice(0, 1).map((edit) => ({ ...edit, durationTicks: Infinity }));
    }
  }

  write(sample: Sample): void {
    if (this.#sizes.length >= maxSamples) {
      throw new ServiceError("upstream_invalid", `a track has more than ${maxSamples} samples`);
    }
    this.#addToChunk(sample.data, this.#times.add(sample));
    this.#sizes.push(sample.data.length);
    this.#groups.push(this.#groupSets.add(sample.groups));
    if (sample.isSync) this.#syncs.push(this.#sizes.length);
  }

  /** Appends the samples of the open chunk to the media data. */
  flush(): void {
    const { bytes, samples } = this.#open;
    if (samples > 0) this.#addChunk(this.#buffer!.subarray(0, bytes), samples);
    this.#open = { bytes: 0, samples: 0, fromTicks: 0 };
  }

  /** Appends the samples of the open chunk, but for the last one, whose end is not known: more will come later. */
  cut(): void {
    const { bytes, samples } = this.#open;
    if (samples < 2) return;
    const lastBytes = this.#sizes.at(this.#sizes.length - 1)!;
    const restBytes = bytes - lastBytes;
    this.#addChunk(this.#buffer!.subarray(0, restBytes), samples - 1);
    this.#buffer!.copyWithin(0, restBytes, bytes);
    this.#open = { bytes: lastBytes, samples: 1, fromTicks: this.#times.lastTicks };
  }

  /** Appends the last samples; no more follow. */
  end(): void {
    this.flush();
    this.#hasEnded = true;
  }

  readChunks(): ChunkReader {
    return new ChunkReader({
      sizes: this.#sizes,
      syncs: this.#syncs,
      chunkRuns: this.#chunkRuns,
      chunks: this.#chunks,
      nextTimes: this.#times.reader(),
      endedSamples: () => this.#sizes.length - (this.#hasEnded ? 0 : 1),
    });
  }

  /**
   * Returns what the index has of it; before `flush`, the open chunk is missing. Undefined if no sample is presented.
   * @param videoStartS See `presentedParts`.
   */
  index(videoStartS: number): TrackIndex | undefined {
    if (!this.#times.isPresented) return undefined;
    const times = this.#times.index();
    return {
      ...times,
      format: this.#first,
      sampleEntries: this.#entries.all,
      sizes: this.#sizes.values(),
      syncs: this.#syncs.values(),
      groups: groupTables(this.#groupSets.all, this.#groups.pairs()),
      chunks: this.#chunks,
      chunkRuns: this.#chunkRuns.values(),
      parts: presentedParts(times, this.#first, this.#edits, videoStartS),
    };
  }

  #addToChunk(data: Uint8Array, dts: number): void {
    const isFull = this.#open.bytes + data.length > chunkBytes;
    if (isFull || dts - this.#open.fromTicks >= this.#first.timescale) this.flush();
    if (data.length > chunkBytes) {
      this.#addChunk(data, 1);
      return;
    }
    const open = this.#open;
    this.#buffer ??= Buffer.allocUnsafeSlow(chunkBytes);
    this.#buffer.set(data, open.bytes);
    if (open.samples === 0) open.fromTicks = dts;
    open.bytes += data.length;
    open.samples++;
  }

  #addChunk(bytes: Uint8Array, samples: number): void {
    this.#chunks.push(this.#append(bytes));
    const entry = this.#entry;
    if (this.#lastRun.samples === samples && this.#lastRun.entry === entry) return;
    this.#lastRun = { samples, entry };
    for (const value of [this.#chunks.length, samples, entry]) this.#chunkRuns.push(value);
  }
}

const maxEntries = 1024;
const maxEntryBytes = 1 << 20;

/** Creates a list of the distinct sample entries of a track. */
function createSampleEntries() {
  const all: Buffer[] = [];
  let bytes = 0;
  return {
    all,
    /**
     * Adds `entry` unless it is known; returns its number, from 1.
     * @throws ServiceError `upstream_invalid` beyond 1024 entries or 1 MiB.
     */
    add(entry: Uint8Array): number {
      const copy = Buffer.from(entry);
      // data_reference_index 1 (ISO/IEC 14496-12 §8.5.2): the media data are in this file.
      if (copy.length >= 16) copy.writeUInt16BE(1, 14);
      const known = all.findIndex((other) => other.equals(copy));
      if (known !== -1) return known + 1;
      all.push(copy);
      bytes += copy.length;
      if (all.length <= maxEntries && bytes <= maxEntryBytes) return all.length;
      throw new ServiceError(
        "upstream_invalid",
        `a track changes its format too often: it has ${all.length} sample entries of ${bytes} bytes, ` +
          `the limit is ${maxEntries} entries of ${maxEntryBytes} bytes`,
      );
    },
  };
}
