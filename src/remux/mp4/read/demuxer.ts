import { type Box, boxesIn, damagedError, viewOf } from "../boxes.ts";
import { type OpenFile, openFile } from "../../open-file.ts";
import type { Demuxer, DemuxerOptions } from "../../samples.ts";
import { checkSampleTables } from "./check-tables.ts";
import { fileBoxes, readFully, readRange } from "./file-boxes.ts";
import { readFragment } from "./fragment.ts";
import { createBudget, type IndexedSample } from "./indexed-sample.ts";
import { type InitTrack, readInit } from "./init.ts";
import { numbersIn, numbersInFile } from "./number-source.ts";
import { createSampleOutput } from "./sample-output.ts";
import { readSampleTables } from "./sample-tables.ts";

/** As many as the writer takes per track. */
const maxFileSamples = 1 << 24;

/**
 * Creates a demuxer of MP4, fragmented (ISO/IEC 14496-12 §8.8) or not. It passes sample entries and
 * samples on as they are, whatever the codec. A segment consists of complete boxes: an init section,
 * fragments with their media data, or both.
 */
export function createMp4Demuxer({ sink, timelines, kinds, onLeft }: DemuxerOptions): Required<Demuxer> {
  const output = createSampleOutput(sink, timelines);
  let tracks: InitTrack[] | undefined;
  let nextDts = new Map<InitTrack, number>();

  function readMoov(bytes: Uint8Array, moov: Box): InitTrack[] {
    tracks = readInit(bytes, moov, kinds, onLeft);
    nextDts = new Map();
    for (const track of tracks) output.addTrack(track);
    return tracks;
  }

  const demuxer: Required<Demuxer> = {
    read(segment, timing) {
      const budget = createBudget(segment.length);
      const boxes = [...boxesIn(viewOf(segment), 0, segment.length)];
      const hasData = boxes.some(({ type }) => type === "mdat");
      for (const found of boxes) {
        if (found.type === "moov") {
          if (hasData) checkSampleTables(numbersIn(segment));
          const samples = readSampleTables(segment, readMoov(segment, found), budget);
          if (hasData) output.write(segment, [...samples], timing);
        } else if (found.type === "moof") {
          if (tracks === undefined) throw damagedError("a fragment comes before any init section");
          const samples = readFragment(segment, found, { tracks, nextDts, budget });
          output.write(segment, samples, timing);
        }
      }
    },
    /**
     * The index (`moov`) may be anywhere in the file. Memory: the index, and 8 MiB or one fragment.
     * @throws also `upstream_invalid` if a top-level box is cut off, or if the index, a fragment or a
     * sample has over 256 MiB; the file system's own errors.
     */
    *readFile(path, timing) {
      using file = openFile(path);
      const { fd, size } = file;
      checkSampleTables(numbersInFile(fd));
      const boxes = [...fileBoxes(fd, size)];
      if (!boxes.some(({ type }) => type === "moov" || type === "moof")) {
        throw damagedError(`the file has neither "moov" nor "moof"`);
      }
      const moov = boxes.find(({ type }) => type === "moov");
      for (const { bytes, samples } of moov ? readIndexed(file, moov, readMoov) : []) {
        output.write(bytes, samples, timing);
        yield;
      }
      for (const fragment of fragmentRanges(boxes)) {
        demuxer.read(readRange(fd, fragment), timing);
        yield;
      }
    },
    // Samples are written as they are read.
    flush() {},
  };
  return demuxer;
}

/** Yields the samples in the tables of `moov`; `readMoov` reads the tracks in it. */
function* readIndexed(
  file: OpenFile,
  moov: Box,
  readMoov: (bytes: Uint8Array, moov: Box) => InitTrack[],
): Generator<SampleWindow> {
  const bytes = readRange(file.fd, moov);
  const [box] = boxesIn(viewOf(bytes), 0, bytes.length);
  const budget = createBudget(file.size, maxFileSamples);
  yield* readWindows(file, readSampleTables(bytes, readMoov(bytes, box!), budget));
}

/** Yields the ranges from each `moof` to the end of the media data that follow it. */
function* fragmentRanges(boxes: readonly Box[]): Generator<Pick<Box, "start" | "end">> {
  let range: Pick<Box, "start" | "end"> | undefined;
  let hasData = false;
  for (const { type, start, end } of boxes) {
    if (type === "moof" && (range === undefined || hasData)) {
      if (range !== undefined) yield range;
      range = { start, end };
      hasData = false;
    } else if (range !== undefined && (type === "moof" || type === "mdat")) {
      range.end = end;
      hasData ||= type === "mdat";
    }
  }
  if (range !== undefined) yield range;
}

/** Samples of a file with their bytes. */
interface SampleWindow {
  /** Valid until the next window is read. */
  bytes: Uint8Array;
  /** Their offsets count from the start of `bytes`. */
  samples: IndexedSample[];
}

const windowBytes = 8 << 20;
const windowSamples = 4096;
const maxSampleBytes = 256 << 20;

/**
 * Reads samples of an open file in their order, at most 8 MiB and 4096 of them at a time,
 * or a single larger one.
 * @throws ServiceError `upstream_invalid` if a sample is not within the file or over 256 MiB.
 */
function* readWindows(
  { fd, size: fileBytes }: OpenFile,
  samples: Iterable<IndexedSample>,
): Generator<SampleWindow, void> {
  let buffer = Buffer.alloc(0);
  const load = (bytes: number, loaded: IndexedSample[]): SampleWindow => {
    if (bytes > buffer.length) buffer = Buffer.allocUnsafeSlow(Math.max(bytes, Math.min(windowBytes, fileBytes)));
    return { bytes: readSamples(fd, loaded, buffer.subarray(0, bytes)), samples: loaded };
  };
  let window: IndexedSample[] = [];
  let size = 0;
  for (const sample of samples) {
    checkBounds(sample, fileBytes);
    const isFull = size + sample.size > windowBytes || window.length === windowSamples;
    if (isFull && window.length > 0) {
      yield load(size, window);
      window = [];
      size = 0;
    }
    window.push(sample);
    size += sample.size;
  }
  if (window.length > 0) yield load(size, window);
}

function checkBounds({ offset, size }: IndexedSample, fileBytes: number): void {
  if (offset < 0 || offset + size > fileBytes) {
    throw damagedError(`a sample of ${size} bytes is at ${offset} of ${fileBytes} bytes`);
  }
  if (size > maxSampleBytes) throw damagedError(`a sample has ${size} bytes, the limit is ${maxSampleBytes}`);
}

/** Reads the samples' bytes, adjacent ones at once, and makes their offsets those in the result. */
function readSamples(fd: number, samples: readonly IndexedSample[], into: Buffer): Uint8Array {
  const ranges: { start: number; end: number }[] = [];
  let size = 0;
  for (const sample of samples.toSorted((a, b) => a.offset - b.offset)) {
    const { offset: start } = sample;
    const last = ranges.at(-1);
    if (last?.end === start) last.end += sample.size;
    else ranges.push({ start, end: start + sample.size });
    sample.offset = size;
    size += sample.size;
  }
  let at = 0;
  for (const { start, end } of ranges) {
    readFully(fd, into.subarray(at, at + end - start), start);
    at += end - start;
  }
  return into;
}
