import type { createNumberList } from "./number-lists.ts";

/** Samples that are next to each other in the media data. */
export interface TrackChunk {
  /** Number of the sample entry, from 1. */
  entry: number;
  /** Of the media data. */
  offset: number;
  bytes: number;
  /** Decode time after that of the track's first sample. */
  startTicks: number;
  samples: readonly ChunkSample[];
}

interface ChunkSample {
  bytes: number;
  /** Until the next one is decoded. */
  ticks: number;
  /** Presentation time after decode time. */
  composition: number;
  isSync: boolean;
}

type NumberList = ReturnType<typeof createNumberList>;

/** What a track has of its chunks so far; see `TrackIndex`. */
interface ChunkLists {
  sizes: NumberList;
  syncs: NumberList;
  chunkRuns: NumberList;
  chunks: readonly number[];
  nextTimes: () => Pick<ChunkSample, "ticks" | "composition">;
  endedSamples: () => number;
}

/** Reads the chunks of a track from the first one on, also while it is being written. */
export class ChunkReader {
  readonly #lists: ChunkLists;
  #chunk = 0;
  #sample = 0;
  #sync = 0;
  #run = 0;
  #ticks = 0;

  constructor(lists: ChunkLists) {
    this.#lists = lists;
  }

  /** Where the next chunk is in the media data; undefined: it is not there yet. */
  get offset(): number | undefined {
    return this.#lists.chunks[this.#chunk];
  }

  /** Returns the next chunk; undefined until it is there, and the end of its last sample is known. */
  next(): TrackChunk | undefined {
    const { offset } = this;
    if (offset === undefined) return undefined;
    const { chunkRuns, endedSamples } = this.#lists;
    while ((chunkRuns.at(3 * this.#run + 3) ?? Infinity) <= this.#chunk + 1) this.#run += 1;
    const count = chunkRuns.at(3 * this.#run + 1)!;
    if (this.#sample + count > endedSamples()) return undefined;
    const startTicks = this.#ticks;
    const samples = Array.from({ length: count }, () => this.#nextSample());
    this.#chunk += 1;
    const bytes = samples.reduce((sum, sample) => sum + sample.bytes, 0);
    return { entry: chunkRuns.at(3 * this.#run + 2)!, offset, bytes, startTicks, samples };
  }

  #nextSample(): ChunkSample {
    const { sizes, syncs, nextTimes } = this.#lists;
    const { ticks, composition } = nextTimes();
    const bytes = sizes.at(this.#sample)!;
    this.#sample += 1;
    this.#ticks += ticks;
    const isSync = syncs.at(this.#sync) === this.#sample;
    if (isSync) this.#sync += 1;
    return { bytes, ticks, composition, isSync };
  }
}
