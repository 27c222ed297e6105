import { setImmediate as nextTurn } from "node:timers/promises";
import { ServiceError } from "../../model/errors.ts";
import type { Additions } from "../additions.ts";
import type { AudioChoice } from "../audio-choice.ts";
import { openFile, type OpenFile } from "../open-file.ts";
import type { MediaRange, TrackFormat, TrackKind } from "../samples.ts";
import { damagedError } from "./boxes.ts";
import { type Cut, type CutPlan, type CutPosition, planCut, type PlannedTrack } from "./cut-plan.ts";
import { indexIn, type SampleGroup, startOf } from "./cut-tracks.ts";
import {
  asReset,
  createJoin,
  type Join,
  type JoinedSample,
  joinOf,
  keepSample,
  type Start,
  withGaps,
} from "./joins.ts";
import { readFully } from "./read/file-boxes.ts";
import type { IndexedSample } from "./read/indexed-sample.ts";
import type { InitTrack, RankedTrack } from "./read/init.ts";
import { assertSampleCounts } from "./read/listed-samples.ts";
import { playedOf, readSampleLists, type SampleList } from "./read/sample-list.ts";
import { readWindows } from "./read/sample-windows.ts";
import { Mp4Writer } from "./write/writer.ts";

export interface CutOptions {
  /** An MP4 file that is not fragmented. */
  source: string;
  /** Path of the result; the caller flushes it to the disk. */
  target: string;
  /** In order, apart from each other. */
  ranges: readonly MediaRange[];
  /** Chooses among the audio tracks; default: all. */
  audio?: AudioChoice;
  /** Of its first audio, if the source does not say; BCP 47; default: unknown. */
  language?: string | null;
  /** Where the source lacks media that exist, seconds from its start. */
  missing: Readonly<Record<TrackKind, readonly MediaRange[]>>;
  /** The media end with the source. */
  isWhole: boolean;
  /** Limit of the media, bytes. */
  maxBytes: number;
  /** Returns what to add to these parts of the source. */
  additions: (cut: CutPosition) => Promise<Additions>;
  /** As in `Mp4WriterOptions`. */
  additionBytes: () => number;
  /** Called often with the bytes of media that the file has. */
  onWritten: (path: string, bytes: number) => void;
  signal: AbortSignal;
}

/**
 * Writes an MP4 file that presents exactly these ranges of another one, joined; see `planCut`. Its video and the chosen audio
 * tracks are cut, their samples stay. Returns what is kept of the source, and how long the result is by it, seconds; `null`, and
 * writes nothing, if it would need media that the source lacks.
 *
 * @throws ServiceError `format_unavailable` if nothing is within the ranges; of the reader and the writer; `signal.reason`; the file system's own errors. The file is
 * removed then.
 */
export async function cutMp4(options: CutOptions): Promise<Cut | null> {
  const { source, target, ranges, audio, language = null, maxBytes, additionBytes, signal } = options;
  using file = openFile(source);
  let leftAudio = 0;
  const lists = readSampleLists(file, (all) => {
    const { tracks, left } = chooseTracks(all, audio);
    leftAudio = left;
    return tracks;
  });
  const plan = planCut(lists, ranges, (list, index) => joinAt(file, list, index));
  if (isLacking(plan, options)) return null;
  if (plan.kept.length === 0) {
    const lastsS = (plan.endS - plan.zeroS).toFixed(3);
    const none = ranges.length === 1 ? "the range is not" : `none of the ${ranges.length} ranges is`;
    const rule = `${none} within the media, which last ${lastsS} s`;
    throw new ServiceError("format_unavailable", rule);
  }
  const durationS = plan.kept.reduce((sum, { startS, endS }) => sum + endS - startS, 0);
  const additions = await options.additions(plan);
  const writer = new Mp4Writer({ path: target, expectedS: durationS, maxBytes, additionBytes });
  try {
    const write = createTrackSink(writer, plan.tracks, language);
    for (const window of readWindows(file, samplesOf(plan))) {
      const { bytes, samples } = window.read();
      for (const sample of samples) write(bytes, sample);
      await writer.drain();
      options.onWritten(target, writer.size);
      signal.throwIfAborted();
      await nextTurn();
    }
    await writer.settle();
    writer.finish(additions);
    assertSampleCounts(target, plan.tracks.map(countPlanned));
    return { kept: plan.kept, durationS, gaps: plan.gaps, leftAudio };
  } catch (error) {
    writer.discard();
    throw error;
  }
}

/** Returns how many samples are to be written. */
const countPlanned = ({ groups }: PlannedTrack) => ({
  samples: groups.reduce((sum, group) => sum + group.to - startOf(group) - group.left.size, 0),
});

/** Whether media are missing that are in the ranges, or are taken for them. */
function isLacking({ tracks, zeroS, isBeyond }: CutPlan, { ranges, missing, isWhole }: CutOptions): boolean {
  const wanted = ranges.map(({ startS, endS }) => ({ startS: zeroS + startS, endS: zeroS + endS }));
  const isIn = (needed: readonly MediaRange[], holes: readonly MediaRange[]) =>
    needed.some(({ startS, endS }) => holes.some((hole) => startS < hole.endS && endS > hole.startS));
  if ((isBeyond && !isWhole) || isIn(wanted, missing.video) || isIn(wanted, missing.audio)) return true;
  return tracks.some(({ list, groups }) => {
    const taken = groups.map((group) => group.taken);
    return isIn(taken, missing[list.track.formats[0]!.kind]);
  });
}

/** No access unit is larger. */
const maxSampleBytes = 32 << 20;

/** Returns how decoding starts with a sync sample; see `joinOf`. @throws ServiceError `upstream_invalid` */
export function joinAt({ fd }: OpenFile, list: SampleList, index: number): Start | null {
  const { track, entry, offset, size } = list.at(index);
  if (size > maxSampleBytes) return "alone";
  const sample = readFully(fd, Buffer.alloc(size), offset);
  return joinOf(sample, track.formats[entry - 1]?.sampleEntry ?? sample);
}

/** Returns the video tracks and the chosen ones for audio, chosen as of other files (`readInit`), by default all; `left`: how many others there are. */
function chooseTracks(all: readonly RankedTrack[], audio?: AudioChoice): { tracks: InitTrack[]; left: number } {
  const [video, used] = [playedOf(all, "video"), playedOf(all, "audio")];
  if (audio === undefined) return { tracks: [...video, ...used], left: 0 };
  const chosen = audio.choose(used.map(({ formats: [format] }) => format?.language ?? null));
  const taken = chosen.map(({ index, ...slot }) => ({ ...used[index]!, ...slot }));
  return { tracks: [...video, ...taken], left: used.length - taken.length };
}

interface TakenSample extends IndexedSample {
  /** How it and those after it follow samples that they do not continue; `null`: as the one before. */
  join: Join | null;
  /** It is there only for those after it, and stays as it is. */
  isReset: boolean;
  /** It is not written. */
  isLeft: boolean;
}

/** Yields the samples that are taken, those of a range in the order of their decode times. */
function* samplesOf({ tracks, kept }: CutPlan): Generator<TakenSample> {
  for (const range of kept.keys()) {
    const open = tracks.flatMap(({ list, groups }) => {
      const group = groups.find((each) => each.range === range);
      return group === undefined ? [] : [{ list, group, at: startOf(group) }];
    });
    for (;;) {
      const left = open.filter(({ at, group }) => at < group.to);
      const [first] = left.toSorted((a, b) => decodeS(a) - decodeS(b));
      if (first === undefined) break;
      const { list, group } = first;
      const number = first.at++;
      const sample = list.at(indexIn(group, number));
      const { dts, pts } = group.times.get(number) ?? sample;
      const times = { dts: dts + group.decodeShift, pts: pts + group.shift };
      const isJoin = number === group.from && (range > 0 || group.join === "reset");
      const join = isJoin ? group.join : null;
      // A reader that looks for where decoding can start has to find the sample before it.
      const isSync = sample.isSync && join !== "reset";
      yield { ...sample, ...times, isSync, join, isReset: number < group.from, isLeft: group.left.has(number) };
    }
  }
}

function decodeS({ list, group, at }: { list: SampleList; group: SampleGroup; at: number }): number {
  return ((group.times.get(at)?.dts ?? list.dts(at)) + group.decodeShift) / list.timescale;
}

/** Encoders number IDR pictures with 0 and 1 in turn. */
const leastResetId = 2;

interface OpenTrack {
  number: number;
  /** Of the latest sample. */
  entry: number;
  formats: TrackFormat[];
  /** Lets a sample follow those before its range. */
  change: (sample: Uint8Array) => JoinedSample;
}

/**
 * Adds the tracks to the writer, the first audio in this language if it states none. Returns a function that writes a sample, whose
 * offset counts from the start of `bytes`.
 */
function createTrackSink(writer: Mp4Writer, tracks: readonly PlannedTrack[], language: string | null) {
  const open = new Map<InitTrack, OpenTrack>();
  const firstAudio = tracks.find(({ list }) => list.track.formats[0]!.kind === "audio");
  for (const planned of tracks) {
    const { list, edits, groups } = planned;
    const { track } = list;
    const label = planned === firstAudio ? { language: track.formats[0]!.language ?? language } : {};
    const hasGaps = groups.some(({ left, join }) => left.size > 0 || join === "reset");
    const own = { ...label, place: track.place, edits };
    const formats = track.formats.map((format) => {
      return { ...format, ...own, ...(hasGaps && { sampleEntry: withGaps(format.sampleEntry) }) };
    });
    const { entry } = list.at(indexIn(groups[0]!, startOf(groups[0]!)));
    const number = writer.setFormat(formatAt(formats, entry));
    open.set(track, { number, entry, formats, change: keepSample });
  }
  let resets = 0;
  return (bytes: Uint8Array, { track, entry, offset, size, join, isReset, isLeft, ...times }: TakenSample): void => {
    const output = open.get(track)!;
    const format = formatAt(output.formats, entry);
    if (entry !== output.entry) writer.setFormat(format, output.number);
    output.entry = entry;
    const media = bytes.subarray(offset, offset + size);
    const own = formatAt(track.formats, entry).sampleEntry;
    if (join !== null) output.change = createJoin(join, own);
    const data = isReset ? asReset(media, own, leastResetId + (resets++ % 2)) : output.change(media).data;
    // Players start at sync samples before an edit, also at those that only encoders call so.
    const isSync = times.isSync && (format.kind !== "video" || joinOf(media, own) !== null);
    if (!isLeft) writer.write(output.number, { ...times, isSync, data });
  };
}

/** @throws ServiceError `upstream_invalid` */
function formatAt(formats: readonly TrackFormat[], entry: number): TrackFormat {
  const format = formats[entry - 1];
  if (format === undefined) throw damagedError(`a sample has the sample entry ${entry} of ${formats.length}`);
  return format;
}
