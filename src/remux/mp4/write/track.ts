import { ServiceError } from "../../../model/errors.ts";
import { createNumberList } from "./number-lists.ts";
import { createSampleEntries } from "./sample-entries.ts";
import { type PresentedPart, presentedParts } from "./presented-parts.ts";
import { createTrackTimes, type TimesIndex } from "./times.ts";
import type { Sample, TrackFormat } from "../../samples.ts";

/** A track of a file that is written. */
export interface TrackWriter {
  setFormat(format: TrackFormat): void;
  write(sample: Sample): void;
  /** Appends the samples of the open chunk to the media data. */
  flush(): void;
  /** Returns what the index states; before `flush`, the open chunk is missing in it. Undefined if no sample is presented. */
  index(): TrackIndex | undefined;
}

/** Contents of the sample tables (ISO/IEC 14496-12 §8.6, §8.7). */
export interface TrackIndex extends Pick<TimesIndex, "durations" | "compositions" | "mediaTicks"> {
  format: TrackFormat;
  /** At least one, in order. */
  parts: readonly PresentedPart[];
  sampleEntries: readonly Uint8Array[];
  /** Size of each sample in bytes. */
  sizes: Uint32Array;
  /** Numbers of the sync samples, from 1. */
  syncs: Uint32Array;
  /** First chunk (from 1), samples per chunk and sample entry (from 1) in turn (`stsc`). */
  chunkRuns: Uint32Array;
  /** Offsets of the chunks in the media data. */
  chunks: readonly number[];
}

/** 31 hours of 150 samples a second; each takes up to 24 bytes of memory. */
const maxSamples = 1 << 24;
const chunkBytes = 1 << 20;

/**
 * Creates a track whose chunks have at most 1 MiB and last at most a second; a larger sample is a chunk of its own.
 * @param append Appends a chunk to the media data and returns its offset in them.
 */
export function createTrackWriter(
  first: TrackFormat,
  append: (chunk: Uint8Array) => number,
): TrackWriter {
  const entries = createSampleEntries();
  const times = createTrackTimes(first.timescale, first.edits !== undefined);
  const sizes = createNumberList();
  const syncs = createNumberList();
  const chunks: number[] = [];
  const chunkRuns = createNumberList();
  let buffer: Buffer | undefined;
  let open = { bytes: 0, samples: 0, fromTicks: 0 };
  let entry = entries.add(first.sampleEntry);
  let { edits } = first;
  let lastRun = { samples: 0, entry: 0 };

  function addChunk(bytes: Uint8Array, samples: number): void {
    chunks.push(append(bytes));
    if (lastRun.samples === samples && lastRun.entry === entry) return;
    lastRun = { samples, entry };
    for (const value of [chunks.length, samples, entry]) chunkRuns.push(value);
  }

  function flush(): void {
    if (open.samples > 0) addChunk(buffer!.subarray(0, open.bytes), open.samples);
    open = { bytes: 0, samples: 0, fromTicks: 0 };
  }

  function addToChunk(data: Uint8Array, dts: number): void {
    const isFull = open.bytes + data.length > chunkBytes;
    if (isFull || dts - open.fromTicks >= first.timescale) flush();
    if (data.length > chunkBytes) return addChunk(data, 1);
    buffer ??= Buffer.allocUnsafeSlow(chunkBytes);
    buffer.set(data, open.bytes);
    if (open.samples === 0) open.fromTicks = dts;
    open.bytes += data.length;
    open.samples++;
  }

  return {
    setFormat(format) {
      if (format.kind !== first.kind || format.timescale !== first.timescale) {
        throw new TypeError("a track keeps its kind and timescale");
      }
      flush();
      entry = entries.add(format.sampleEntry);
      if (format.edits !== first.edits) {
        edits = edits?.slice(0, 1).map((edit) => ({ ...edit, durationTicks: Infinity }));
      }
    },
    write(sample) {
      if (sizes.length >= maxSamples) {
        throw new ServiceError("upstream_invalid", `a track has more than ${maxSamples} samples`);
      }
      addToChunk(sample.data, times.add(sample));
      sizes.push(sample.data.length);
      if (sample.isSync) syncs.push(sizes.length);
    },
    flush,
    index() {
      if (!times.isPresented) return undefined;
      const index = times.index();
      const { durations, compositions, mediaTicks } = index;
      return {
        format: first,
        sampleEntries: entries.all,
        sizes: sizes.values(),
        syncs: syncs.values(),
        chunks,
        chunkRuns: chunkRuns.values(),
        durations,
        compositions,
        mediaTicks,
        parts: presentedParts(index, first, edits),
      };
    },
  };
}
