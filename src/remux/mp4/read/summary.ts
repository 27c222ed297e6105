import { type Box, damagedError, firstBox, getChild } from "../boxes.ts";
import { isQuarterTurn } from "../matrix.ts";
import type { AudioChoice } from "../../audio-choice.ts";
import type { MediaSummary } from "../../media-summary.ts";
import { type OpenFile, openFile } from "../../open-file.ts";
import type { TrackFormat } from "../../samples.ts";
import { readIndex, readIndexAt } from "./movie-index.ts";
import { checkSampleTables } from "./check-tables.ts";
import { completeFileBoxes, readFully, readRange } from "./file-boxes.ts";
import { readFragmentRuns } from "./fragment.ts";
import { readMovieHeader } from "./headers.ts";
import { createBudget, type IndexedSample, maxFileSamples } from "./indexed-sample.ts";
import { type InitTrack, readInit, secondsOf } from "./init.ts";
import { numbersInFile } from "./number-source.ts";
import { readSampleTables } from "./sample-tables.ts";
import { readDisplaySize } from "../sample-entry.ts";

export interface Mp4Summary extends MediaSummary {
  /** Its brand is QuickTime's. */
  isQuickTime: boolean;
}

/**
 * Reads the MP4 file at `path`: its index, and of a fragmented file the times of all fragments.
 * Each step reads a bounded part. Does not parse configurations of decoders. Returns undefined if no box is cut off and there
 * is no audio or video track.
 * @throws ServiceError `upstream_invalid` if it cannot be read; `drm_protected`; the file system's own errors.
 */
export function* readMp4Summary(path: string): Generator<undefined, Mp4Summary | undefined> {
  using file = openFile(path);
  const { fd, size } = file;
  checkSampleTables(numbersInFile(fd));
  const boxes = [...completeFileBoxes(fd, size)];
  const index = boxes.find(({ type }) => type === "moov");
  if (index === undefined) {
    // Fewer bytes than a header are no box that was cut off.
    if (size - (boxes.at(-1)?.end ?? 0) < 8) return undefined;
    throw damagedError(`a box is cut off, and there is no "moov" before it`);
  }
  const bytes = readIndexAt(file, index);
  const moov = firstBox(bytes);
  const tracks = readInit(bytes, moov, { kinds: ["video", "audio"] });
  if (tracks.length === 0) return undefined;
  const { duration, timescale } = readMovieHeader(bytes, getChild(bytes, moov, "mvhd"));
  const fragments = boxes.filter(({ type }) => type === "moof");
  const isInHeader = fragments.length === 0 && duration !== null;
  const durationS = isInHeader ? duration / timescale : yield* measureSpan(file, bytes, tracks, fragments);
  const video = tracks.map(({ formats }) => formats[0]!).find(({ kind }) => kind === "video");
  return {
    isQuickTime: isQuickTime(fd, boxes[0]),
    hasVideo: video !== undefined,
    durationS,
    ...(video === undefined ? { width: null, height: null } : sizeOf(video)),
  };
}

/** Has a choice made among the audio tracks of a complete file that are not encrypted. @throws ServiceError as `readInit` */
export function chooseMp4Audio(path: string, choice: AudioChoice): void {
  using file = openFile(path);
  const bytes = readIndex(file);
  readInit(bytes, firstBox(bytes), { kinds: ["audio"], audio: choice });
}

/**
 * Returns the seconds from the first presentation time to the last end, of the samples in the index (`bytes`, which `tracks`
 * are of) and in the fragments; `null` without samples.
 */
function* measureSpan(
  { fd, size }: OpenFile,
  bytes: Uint8Array,
  tracks: readonly InitTrack[],
  fragments: readonly Box[],
): Generator<undefined, number | null> {
  let [start, end] = [Infinity, -Infinity];
  const add = ({ track, pts, duration }: IndexedSample): void => {
    start = Math.min(start, secondsOf(track, pts));
    end = Math.max(end, secondsOf(track, pts + duration));
  };
  const budget = createBudget(size, maxFileSamples);
  for (const sample of readSampleTables(bytes, tracks, budget)) add(sample);
  const nextDts = new Map<InitTrack, number>();
  for (const fragment of fragments) {
    const moof = readRange(fd, fragment);
    const { runs } = readFragmentRuns(moof, firstBox(moof), { tracks, nextDts, budget });
    for (const { samples } of runs) for (const sample of samples) add(sample);
    yield;
  }
  return end > start ? end - start : null;
}

function sizeOf(format: TrackFormat): { width: number; height: number } {
  const { width, height } = readDisplaySize(format.sampleEntry) ?? format;
  const isTurned = format.matrix !== undefined && isQuarterTurn(format.matrix);
  return isTurned ? { width: height, height: width } : { width, height };
}

function isQuickTime(fd: number, first: Box | undefined): boolean {
  if (first?.type !== "ftyp" || first.end - first.body < 4) return true;
  return readFully(fd, Buffer.alloc(4), first.body).toString("latin1") === "qt  ";
}
