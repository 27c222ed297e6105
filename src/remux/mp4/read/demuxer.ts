import { unlessUnreadable } from "../../../model/errors.ts";
import { type Box, boxesIn, damagedError, firstBox } from "../boxes.ts";
import { openFile, type ReadFile } from "../../open-file.ts";
import { createPictureMemory } from "../../track-output.ts";
import {
  type ByteSpan,
  type Demuxer,
  type DemuxerOptions,
  type MediaFile,
  type MediaRange,
  type SegmentTiming,
  sortedIndex,
  spanOf,
  type TrackKind,
} from "../../samples.ts";
import { checkSampleTables } from "./check-tables.ts";
import { readIndex, readIndexAt } from "./movie-index.ts";
import { completeFileBoxes, createLostCounter, fileBoxes, isCompleteMp4, isIndex, readRange } from "./file-boxes.ts";
import { pairFragments, readFragment, readFragmentRuns } from "./fragment.ts";
import { createBudget, fillPause, type IndexedSample, maxFileSamples } from "./indexed-sample.ts";
import { requireUsualRates } from "./headers.ts";
import { type InitTrack, readInit, readVideoTimes, secondsOf, type TimedTrack } from "./init.ts";
import { numbersIn, numbersInFile } from "./number-source.ts";
import { createSampleOutput, earliestS } from "./sample-output.ts";
import { readSampleTables } from "./sample-tables.ts";
import { readWindows, type SampleWindow } from "./sample-windows.ts";

/**
 * Creates a demuxer of MP4, fragmented (ISO/IEC 14496-12 §8.8) or not. It passes sample entries and
 * samples on as they are, whatever the codec. A segment consists of complete boxes: an init section,
 * fragments with their media data, or both.
 */
export function createMp4Demuxer(options: DemuxerOptions): Required<Demuxer> {
  return new Mp4Demuxer(options);
}

class Mp4Demuxer implements Required<Demuxer> {
  readonly #options: DemuxerOptions;
  readonly #onDrop: (kind: TrackKind) => void;
  readonly #output: ReturnType<typeof createSampleOutput>;
  readonly #repair = createFragmentRepair();
  readonly #video: ReturnType<typeof createVideoTimes> | undefined;
  readonly #countLost = createLostCounter();
  #tracks: InitTrack[] | undefined;
  #nextDts = new Map<InitTrack, number>();

  constructor(options: DemuxerOptions) {
    const { sink, timelines, kinds, onDrop = () => {}, onUnread } = options;
    this.#options = options;
    this.#onDrop = onDrop;
    this.#output = createSampleOutput(sink, timelines, onDrop);
    this.#video = kinds.includes("video") ? undefined : createVideoTimes(onUnread);
  }

  read(segment: Uint8Array, timing: SegmentTiming): void {
    if (segment.length === 0) return;
    const output = this.#output;
    const budget = createBudget(segment.length);
    const boxes = [...boxesIn(segment)];
    const hasData = boxes.some(({ type }) => type === "mdat");
    const lost = this.#countLost(boxes);
    for (const { formats } of this.#tracks ?? []) for (let i = 0; i < lost; i++) this.#onDrop(formats[0]!.kind);
    for (const found of boxes) {
      if (found.type === "moov") {
        if (hasData) checkSampleTables(numbersIn(segment));
        const samples = readSampleTables(segment, this.#readMoov(segment, found), budget);
        if (hasData) output.write(segment, [...samples], timing);
      } else if (found.type === "moof") {
        if (this.#tracks === undefined) throw damagedError("a fragment comes before any init section");
        const samples = readFragment(segment, found, { tracks: this.#tracks, nextDts: this.#nextDts, budget });
        output.write(segment, this.#repair(segment, samples, timing), timing);
        this.#video?.readFragment(segment, found, { ...timing, offsetS: output.latestOffset(timing) });
      }
    }
  }

  firstTime(segment: Uint8Array): number | null | undefined {
    return firstTimeIn(segment, { tracks: this.#tracks, nextDts: this.#nextDts }, this.#options);
  }

  /**
   * The index (`moov`) may be anywhere in the file. Memory: the index, and 8 MiB or one fragment.
   * @throws also `upstream_invalid` if a top-level box is cut off, or if the index, a fragment or a
   * sample has over 256 MiB, or a growing file has fragments; the file system's own errors.
   */
  *readFile({ path, within, growth }: MediaFile, timing: SegmentTiming): Generator<number | undefined, void> {
    using file = openFile(path);
    if (growth !== undefined) {
      yield* this.#readGrowing({ path, fd: file.fd, size: growth.totalBytes }, timing, growth.index);
      return;
    }
    checkSampleTables(numbersInFile(file.fd));
    const boxes = boxesOf(file, path);
    const moov = boxes.find(({ type }) => type === "moov");
    if (moov !== undefined) {
      for (const window of this.#readIndexed(file, readIndexAt(file, moov), { within })) {
        this.#writeWindow(window, timing);
        yield;
      }
    }
    for (const fragment of pairFragments(file.fd, boxes)) {
      this.read(readRange(file.fd, fragment), timing);
      yield;
    }
  }

  *#readGrowing(
    file: ReadFile & { path: string },
    timing: SegmentTiming,
    index: Uint8Array = readIndex(file),
  ): Generator<number | undefined, void> {
    checkSampleTables(numbersIn(index, file.size), index.length);
    for (const window of this.#readIndexed(file, index, { spanAt })) {
      yield window.end;
      this.#writeWindow(window, timing);
      yield;
    }
    yield file.size;
    if (boxesOf(file, file.path).some(({ type }) => type === "moof")) {
      throw damagedError("fragments follow the media of its index");
    }
  }

  flush(): void {
    this.#output.flush();
  }

  #writeWindow(window: SampleWindow, timing: SegmentTiming): void {
    const { bytes, samples } = window.read();
    this.#output.write(bytes, samples, timing);
  }

  #readMoov(bytes: Uint8Array, moov: Box): InitTrack[] {
    const tracks = readInit(bytes, moov, this.#options);
    requireUsualRates(tracks);
    this.#tracks = tracks;
    this.#nextDts = new Map();
    this.#video?.readMoov(bytes, moov);
    for (const track of tracks) this.#output.addTrack(track);
    return tracks;
  }

  /** Returns windows of the samples in the tables of the index: those within these spans, or all. `spanAt`: as for `readWindows`. */
  #readIndexed(
    file: ReadFile,
    index: Uint8Array,
    { within, spanAt: span }: Pick<MediaFile, "within"> & { spanAt?: (position: number) => number },
  ) {
    const budget = createBudget(file.size, maxFileSamples);
    const samples = readSampleTables(index, this.#readMoov(index, firstBox(index)), budget);
    return readWindows(file, within === undefined ? samples : samplesWithin(samples, within), span);
  }
}

/** How much of a growing file is waited for at once: less at its start, so that the first media come early. */
const spanAt = (position: number): number => Math.min(1 << 20, Math.max(8 << 10, position / 8));

function boxesOf({ fd, size }: ReadFile, path: string): Box[] {
  const boxes = [...(isCompleteMp4(path) ? completeFileBoxes : fileBoxes)(fd, size)];
  if (boxes.some(isIndex)) return boxes;
  throw damagedError(`the file has neither "moov" nor "moof"`);
}

/**
 * Creates a repair of the samples of fragments: pauses that one packet of audio fills, and video with which they repeat the end of what came before in
 * their timeline, which is left out.
 */
function createFragmentRepair() {
  const latest = new Map<InitTrack, IndexedSample>();
  let memory = { timeline: NaN, pictures: createPictureMemory() };
  return (bytes: Uint8Array, samples: IndexedSample[], { timeline }: SegmentTiming): IndexedSample[] => {
    if (timeline !== memory.timeline) memory = { timeline, pictures: createPictureMemory() };
    for (const sample of samples) {
      if (sample.track.slot !== "video") fillPause(sample, latest.get(sample.track));
      latest.set(sample.track, sample);
    }
    const video = samples.filter(({ track }) => track.slot === "video");
    const found = video.map(({ track, dts, offset, size }) => {
      return { atS: secondsOf(track, dts), data: bytes.subarray(offset, offset + size) };
    });
    const count = memory.pictures.countRepeats(found);
    memory.pictures.add(found.slice(count));
    const repeated = new Set(video.slice(0, count));
    return count === 0 ? samples : samples.filter((sample) => !repeated.has(sample));
  };
}

/** Creates a reader of when video is presented that is not read otherwise. What cannot be read is left out. */
function createVideoTimes(onUnread: NonNullable<DemuxerOptions["onUnread"]> = () => {}) {
  let track: TimedTrack | undefined;
  let nextDts = new Map<TimedTrack, number>();
  /** Media times before samples of the timeline are written. */
  let held: { timeline: number; range: MediaRange | null } = { timeline: 0, range: null };
  return {
    readMoov(bytes: Uint8Array, moov: Box): void {
      track = unlessUnreadable(() => readVideoTimes(bytes, moov));
      nextDts = new Map();
    },
    readFragment(bytes: Uint8Array, moof: Box, { timeline, offsetS, span }: SegmentTiming): void {
      if (track === undefined) return;
      const context = { tracks: [track], nextDts, budget: createBudget(bytes.length) };
      const runs = unlessUnreadable(() => readFragmentRuns(bytes, moof, context).runs) ?? [];
      const toS = (ticks: number) => (ticks - track!.shiftTicks) / track!.timescale;
      const own = runs.flatMap(({ samples }) =>
        samples.map(({ pts, duration }) => ({ startS: toS(pts), endS: toS(pts + duration) })),
      );
      const known = held.timeline === timeline && held.range !== null ? [held.range] : [];
      const range = spanOf([...known, ...own]);
      held = { timeline, range: offsetS === null ? range : null };
      if (range === null || offsetS === null) return;
      const startS = Math.max(range.startS + offsetS, span?.startS ?? -Infinity);
      const endS = Math.min(range.endS + offsetS, span?.endS ?? Infinity);
      if (startS < endS) onUnread({ startS, endS });
    },
  };
}

/** Returns when the first fragment of `segment` that has samples is presented, as `firstTime` does. */
function firstTimeIn(
  segment: Uint8Array,
  before: { tracks: InitTrack[] | undefined; nextDts: ReadonlyMap<InitTrack, number> },
  options: DemuxerOptions,
): number | null | undefined {
  const budget = createBudget(segment.length);
  const boxes = [...boxesIn(segment)];
  let { tracks } = before;
  const nextDts = new Map(before.nextDts);
  for (const found of boxes) {
    if (found.type === "moov") tracks = readInit(segment, found, options);
    if (found.type !== "moof" || tracks === undefined) continue;
    const samples = readFragment(segment, found, { tracks, nextDts, budget });
    if (samples.length > 0) return earliestS(samples);
  }
  return boxes.some(({ type }) => type === "mdat") ? null : undefined;
}

function* samplesWithin(samples: Iterable<IndexedSample>, spans: readonly ByteSpan[]): Generator<IndexedSample> {
  for (const sample of samples) {
    const { offset, size } = sample;
    const span = spans[sortedIndex(spans, ({ end }) => end >= offset + size)];
    if (span !== undefined && span.start <= offset) yield sample;
  }
}
