import { closeSync, fstatSync, openSync } from "node:fs";
import { type Box, boxesIn, damagedError, viewOf } from "../boxes.ts";
import { checkSampleTables } from "./check-tables.ts";
import { fileBoxes, readFully } from "./file-boxes.ts";
import { readFragment } from "./fragment.ts";
import { createBudget } from "./indexed-sample.ts";
import { type InitTrack, readInit } from "./init.ts";
import { numbersIn, numbersInFile } from "./number-source.ts";
import { createSampleOutput } from "./sample-output.ts";
import { readSampleTables } from "./sample-tables.ts";
import { readWindows } from "./sample-windows.ts";
import type { Demuxer, DemuxerOptions } from "../../samples.ts";

/** As many as the writer takes per track. */
const maxFileSamples = 1 << 24;
const maxReadBytes = 256 << 20;

/**
 * Creates a demuxer of MP4, fragmented (ISO/IEC 14496-12 §8.8) or not. It passes sample entries and
 * samples on as they are, whatever the codec. A segment consists of whole boxes: an init section,
 * fragments with their media data, or both.
 */
export function createMp4Demuxer({ sink, timelines, kinds }: DemuxerOptions): Required<Demuxer> {
  const output = createSampleOutput(sink, timelines);
  let tracks: InitTrack[] | undefined;
  let nextDts = new Map<InitTrack, number>();

  function readMoov(bytes: Uint8Array, moov: Box): InitTrack[] {
    tracks = readInit(bytes, moov, kinds);
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
      const fd = openSync(path, "r");
      try {
        const { size } = fstatSync(fd);
        checkSampleTables(numbersInFile(fd));
        const boxes = [...fileBoxes(fd, size)];
        const moov = boxes.find(({ type }) => type === "moov");
        if (moov !== undefined) {
          const bytes = readRange(fd, moov);
          const [box] = boxesIn(viewOf(bytes), 0, bytes.length);
          const budget = createBudget(size, maxFileSamples);
          const samples = readSampleTables(bytes, readMoov(bytes, box!), budget);
          for (const window of readWindows(fd, size, samples)) {
            output.write(window.bytes, window.samples, timing);
            yield;
          }
        } else if (!boxes.some(({ type }) => type === "moof")) {
          throw damagedError(`the file has neither "moov" nor "moof"`);
        }
        for (const fragment of fragmentRanges(boxes)) {
          demuxer.read(readRange(fd, fragment), timing);
          yield;
        }
      } finally {
        closeSync(fd);
      }
    },
    // Samples are written as they are read.
    flush() {},
  };
  return demuxer;
}

type Range = Pick<Box, "start" | "end">;

function readRange(fd: number, { start, end }: Range): Buffer {
  const size = end - start;
  if (size > maxReadBytes) {
    throw damagedError(`an index or fragment has ${size} bytes, the limit is ${maxReadBytes}`);
  }
  return readFully(fd, Buffer.allocUnsafe(size), start);
}

/** Yields the ranges from each `moof` to the end of the media data that follow it. */
function* fragmentRanges(boxes: readonly Box[]): Generator<Range> {
  let range: Range | undefined;
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
