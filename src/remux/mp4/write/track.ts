import { ServiceError } from "../../../errors.ts";
import { createNumberList } from "./number-lists.ts";
import { createSampleEntries } from "./sample-entries.ts";
import { createTrackTimes, type TimesIndex } from "./times.ts";
import type { Sample, TrackFormat } from "../../samples.ts";

/** One track while it is written. */
export interface Mp4Track {
  readonly format: TrackFormat;
  setFormat(format: TrackFormat): void;
  write(sample: Sample): void;
  /** Writes the samples that are still held back. */
  flush(): void;
  /** What its index must say, the samples held back left out. `undefined`: it has no samples. */
  index(): TrackIndex | undefined;
}

/** The tables of ISO/IEC 14496-12 §8.6 and §8.7. */
export interface TrackIndex extends TimesIndex {
  format: TrackFormat;
  sampleEntries: readonly Uint8Array[];
  /** Bytes of each sample. */
  sizes: Uint32Array;
  /** Numbers of the samples at which a decoder can start, from 1. */
  syncs: Uint32Array;
  /** First chunk (from 1), samples a chunk and sample entry (from 1) in turn. */
  chunkRuns: Uint32Array;
  /** Where chunks start in the media data: high and low 32 bits in turn. */
  chunks: Uint32Array;
}

/** 31 hours of 150 samples a second: what is more is no video, and takes up to 24 bytes each. */
const maxSamples = 1 << 24;
const chunkBytes = 1 << 20;

/**
 * @param append Puts a chunk behind the media data that is there and gives its place in it.
 */
export function createMp4Track(
  first: TrackFormat,
  append: (chunk: Uint8Array) => number,
): Mp4Track {
  const entries = createSampleEntries(first.sampleEntry);
  const times = createTrackTimes(first.timescale);
  const sizes = createNumberList();
  const syncs = createNumberList();
  const chunks = createNumberList();
  const chunkRuns = createNumberList();
  let chunkCount = 0;
  let chunk: Buffer | undefined;
  let held = { bytes: 0, samples: 0, fromTicks: 0 };
  let lastRun = { samples: 0, entry: 0 };

  function close(bytes: Uint8Array, samples: number): void {
    const at = append(bytes);
    chunks.push(Math.floor(at / 2 ** 32));
    chunks.push(at % 2 ** 32);
    chunkCount++;
    if (lastRun.samples === samples && lastRun.entry === entries.current) return;
    lastRun = { samples, entry: entries.current };
    for (const value of [chunkCount, samples, entries.current]) chunkRuns.push(value);
  }

  function flush(): void {
    if (held.samples > 0) close(chunk!.subarray(0, held.bytes), held.samples);
    held = { bytes: 0, samples: 0, fromTicks: 0 };
  }

  function hold(data: Uint8Array, dts: number): void {
    const isFull = held.bytes + data.length > chunkBytes;
    if (isFull || dts - held.fromTicks >= first.timescale) flush();
    if (data.length > chunkBytes) return close(data, 1);
    chunk ??= Buffer.allocUnsafeSlow(chunkBytes);
    chunk.set(data, held.bytes);
    if (held.samples === 0) held.fromTicks = dts;
    held.bytes += data.length;
    held.samples++;
  }

  return {
    format: first,
    setFormat(format) {
      if (format.kind !== first.kind || format.timescale !== first.timescale) {
        throw new TypeError("a track keeps its kind and timescale");
      }
      flush();
      entries.choose(format.sampleEntry);
    },
    write(sample) {
      if (sizes.length >= maxSamples) {
        throw new ServiceError("upstream_invalid", `a track has more than ${maxSamples} samples`);
      }
      hold(sample.data, times.add(sample));
      sizes.push(sample.data.length);
      if (sample.isSync) syncs.push(sizes.length);
    },
    flush,
    index() {
      if (sizes.length === 0) return undefined;
      return {
        format: first,
        sampleEntries: entries.all,
        sizes: sizes.values(),
        syncs: syncs.values(),
        chunks: chunks.values(),
        chunkRuns: chunkRuns.values(),
        ...withoutPriming(times.index(), first),
      };
    },
  };
}

/** What a decoder of sound needs to swing in is at most a second, and belongs before time 0. */
function withoutPriming(times: TimesIndex, { kind, timescale }: TrackFormat): TimesIndex {
  const { startTicks, endTicks, shownFromTicks } = times;
  const isPriming = startTicks < 0 && startTicks >= -timescale && endTicks > 0;
  if (kind !== "audio" || !isPriming) return times;
  return { ...times, startTicks: 0, shownFromTicks: shownFromTicks - startTicks };
}
