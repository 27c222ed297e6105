import { setImmediate as nextTurn } from "node:timers/promises";
import { ServiceError } from "../../model/errors.ts";
import type { Additions } from "../additions.ts";
import { openFile, type OpenFile } from "../open-file.ts";
import type { MediaRange, TrackFormat, TrackKind } from "../samples.ts";
import { boxesIn, damagedError, viewOf } from "./boxes.ts";
import { type CutPlan, type CutPosition, planCut, type PlannedTrack } from "./cut-plan.ts";
import type { SampleGroup } from "./cut-tracks.ts";
import { asJoined, canJoin } from "./joins.ts";
import { checkSampleTables } from "./read/check-tables.ts";
import { fileBoxes, readFully, readRange } from "./read/file-boxes.ts";
import { createBudget, type IndexedSample } from "./read/indexed-sample.ts";
import { type InitTrack, readAllTracks } from "./read/init.ts";
import { numbersInFile } from "./read/number-source.ts";
import { SampleList } from "./read/sample-list.ts";
import { readSampleTables } from "./read/sample-tables.ts";
import { readWindows } from "./read/sample-windows.ts";
import { openMp4Writer } from "./write/writer.ts";

export interface CutOptions {
  /** An MP4 file that is not fragmented. */
  source: string;
  /** Path of the result; the caller flushes it to the disk. */
  target: string;
  /** In order, apart from each other. */
  ranges: readonly MediaRange[];
  /** Where the source lacks media that exist, seconds from its start. */
  missing: Readonly<Record<TrackKind, readonly MediaRange[]>>;
  /** The media end with the source. */
  isWhole: boolean;
  /** Limit of the media, bytes. */
  maxBytes: number;
  /** Returns what to add to these parts of the source. */
  additions: (cut: CutPosition) => Promise<Additions>;
  /** Called often with the bytes of media that the file has by now. */
  onWritten: (path: string, bytes: number) => void;
  signal: AbortSignal;
}

/**
 * Writes an MP4 file that presents exactly these ranges of another one, joined; see `planCut`. All its video and audio
 * tracks are cut, their samples stay. Returns what is kept of the source, and how long the result is by it, seconds; `null`, and
 * writes nothing, if it would need media that the source lacks.
 *
 * @throws ServiceError `format_unavailable` if nothing is within the ranges; of the reader and the writer; `signal.reason`; the file system's own errors. The file is
 * removed then.
 */
export async function cutMp4(options: CutOptions): Promise<(Pick<CutPlan, "kept"> & { durationS: number }) | null> {
  const { source, target, ranges, maxBytes, signal } = options;
  using file = openFile(source);
  const plan = planCut(readLists(file), ranges, (list, index) => canStart(file, list.at(index)));
  if (isLacking(plan, options)) return null;
  if (plan.kept.length === 0) {
    const lastsS = (plan.endS - plan.zeroS).toFixed(3);
    const none = ranges.length === 1 ? "the range is not" : `none of the ${ranges.length} ranges is`;
    const rule = `${none} within the media, which last ${lastsS} s`;
    throw new ServiceError("format_unavailable", rule);
  }
  const durationS = plan.kept.reduce((sum, { startS, endS }) => sum + endS - startS, 0);
  const additions = await options.additions(plan);
  const additionBytes = () => sizeOf(additions);
  const writer = openMp4Writer({ path: target, expectedS: durationS, maxBytes, additionBytes });
  try {
    const write = createTrackSink(writer, plan.tracks);
    for (const { bytes, samples } of readWindows(file, samplesOf(plan))) {
      for (const sample of samples) write(bytes, sample);
      await writer.drain();
      options.onWritten(target, writer.size);
      signal.throwIfAborted();
      await nextTurn();
    }
    await writer.settle();
    writer.finish(additions);
    return { kept: plan.kept, durationS };
  } catch (error) {
    writer.discard();
    throw error;
  }
}

/** Bytes of a file from `start` to before `end`. */
export interface ByteSpan {
  start: number;
  end: number;
}

/**
 * Returns where the samples are that `cutMp4` takes of an MP4 file for these ranges. Reads its boxes, and the samples at which
 * a range may start if `isThere` says that the file has them: then there may be others that are needed.
 *
 * @throws ServiceError `upstream_invalid` of the reader; the file system's own errors.
 */
export function bytesOfCut(
  path: string,
  ranges: readonly MediaRange[],
  isThere: (span: ByteSpan) => boolean,
): ByteSpan[] {
  using file = openFile(path);
  const { tracks } = planCut(readLists(file), ranges, (list, index) => {
    const { offset, size } = list.at(index);
    return !isThere({ start: offset, end: offset + size }) || canStart(file, list.at(index));
  });
  const spans: ByteSpan[] = [];
  for (const { list, groups } of tracks) {
    for (const { from, to } of groups) {
      for (let index = from; index < to; index += 1) {
        const { offset, size } = list.at(index);
        const last = spans.at(-1);
        if (last?.end === offset) last.end += size;
        else spans.push({ start: offset, end: offset + size });
      }
    }
  }
  return spans;
}

function isLacking({ tracks, isBeyond }: CutPlan, { missing, isWhole }: CutOptions): boolean {
  if (isBeyond && !isWhole) return true;
  return tracks.some(({ list, groups }) => {
    const holes = missing[list.track.formats[0]!.kind];
    return groups.some(({ taken }) => holes.some(({ startS, endS }) => taken.startS < endS && taken.endS > startS));
  });
}

/** More than the index has of them. */
function sizeOf({ cover, tags, chapters, subtitles }: Additions): number {
  const cues = subtitles.reduce((sum, track) => sum + track.cues.length, 0);
  return (cover?.data.length ?? 0) + 3 * JSON.stringify([tags, chapters]).length + 24 * cues + 1000 * subtitles.length;
}

/** Enough for what comes before the first slice. */
const headBytes = 64 << 10;

function canStart({ fd }: OpenFile, { track, entry, offset, size }: IndexedSample): boolean {
  const head = readFully(fd, Buffer.alloc(Math.min(size, headBytes)), offset);
  return canJoin(head, track.formats[entry - 1]?.sampleEntry ?? head);
}

function readLists(file: OpenFile): SampleList[] {
  checkSampleTables(numbersInFile(file.fd));
  const moov = [...fileBoxes(file.fd, file.size)].find(({ type }) => type === "moov");
  if (moov === undefined) throw damagedError(`the file has no "moov"`);
  const bytes = readRange(file.fd, moov);
  const [box] = boxesIn(viewOf(bytes), 0, bytes.length);
  const budget = createBudget(file.size, maxSamples);
  return readAllTracks(bytes, box!).map((track) => new SampleList(track, readSampleTables(bytes, [track], budget)));
}

/** Of all tracks: 31 hours of 150 samples a second. */
const maxSamples = 1 << 24;

interface TakenSample extends IndexedSample {
  /** It does not continue the sample before it. */
  isJoin: boolean;
}

/** Yields the samples that are taken, those of a range in the order of their decode times. */
function* samplesOf({ tracks, kept }: CutPlan): Generator<TakenSample> {
  for (const range of kept.keys()) {
    const open = tracks.flatMap(({ list, groups }) => {
      const group = groups.find((each) => each.range === range);
      return group === undefined ? [] : [{ list, group, at: group.from }];
    });
    for (;;) {
      const left = open.filter(({ at, group }) => at < group.to);
      const [first] = left.toSorted((a, b) => decodeS(a) - decodeS(b));
      if (first === undefined) break;
      const { list, group } = first;
      const sample = list.at(first.at);
      const { dts, pts } = group.times.get(first.at++) ?? sample;
      const times = { dts: dts + group.decodeShift, pts: pts + group.shift };
      yield { ...sample, ...times, isJoin: range > 0 && first.at === group.from + 1 };
    }
  }
}

function decodeS({ list, group, at }: { list: SampleList; group: SampleGroup; at: number }): number {
  return ((group.times.get(at)?.dts ?? list.dts(at)) + group.decodeShift) / list.timescale;
}

/** Adds the tracks to the writer; returns a function that writes a sample, whose offset counts from the start of `bytes`. */
function createTrackSink(writer: ReturnType<typeof openMp4Writer>, tracks: readonly PlannedTrack[]) {
  const open = new Map<InitTrack, { number: number; entry: number; formats: TrackFormat[] }>();
  for (const { list, edits, groups } of tracks) {
    const { track } = list;
    const formats = track.formats.map((format) => ({ ...format, edits }));
    const { entry } = list.at(groups[0]!.from);
    open.set(track, { number: writer.setFormat(formatAt(formats, entry)), entry, formats });
  }
  return (bytes: Uint8Array, { track, entry, offset, size, isJoin, ...times }: TakenSample): void => {
    const output = open.get(track)!;
    const format = formatAt(output.formats, entry);
    if (entry !== output.entry) writer.setFormat(format, output.number);
    output.entry = entry;
    const media = bytes.subarray(offset, offset + size);
    writer.write(output.number, { ...times, data: isJoin ? asJoined(media, format.sampleEntry) : media });
  };
}

/** @throws ServiceError `upstream_invalid` */
function formatAt(formats: readonly TrackFormat[], entry: number): TrackFormat {
  const format = formats[entry - 1];
  if (format === undefined) throw damagedError(`a sample has the sample entry ${entry} of ${formats.length}`);
  return format;
}
