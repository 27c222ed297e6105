import { openFile, type OpenFile } from "../open-file.ts";
import { type ByteSpan, type IndexRun, joinRuns, joinSpans, type MediaRange, type TrackKind } from "../samples.ts";
import { joinAt } from "./cut.ts";
import { planCut } from "./cut-plan.ts";
import type { FindStart } from "./cut-tracks.ts";
import { secondsOf } from "./read/init.ts";
import { readSampleLists, type SampleList } from "./read/sample-list.ts";

/** Says whether a file has these bytes. */
export type IsThere = (span: ByteSpan) => boolean;

/**
 * Returns where the samples are that `cutMp4` takes of an MP4 file for these ranges, and where the time of the ranges counts from, seconds of the file. Reads its boxes, and the samples at which
 * a range may start if `isThere` says that the file has them: then there may be others that are needed.
 *
 * @throws ServiceError `upstream_invalid` of the reader; the file system's own errors.
 */
export function bytesOfCut(
  path: string,
  ranges: readonly MediaRange[],
  isThere: IsThere,
): Pick<PartNeeds, "spans" | "zeroS"> {
  using file = openFile(path);
  const { tracks, zeroS } = planCut(readSampleLists(file), ranges, startsThere(file, isThere));
  return { spans: tracks.flatMap(({ list, groups }) => bytesOf(list, groups)), zeroS };
}

export interface PartNeeds {
  /** Where the samples are, in order and apart from each other. */
  spans: ByteSpan[];
  /** Where the time of the ranges counts from, seconds of the file. */
  zeroS: number;
  /** What all other samples present, seconds of the file. */
  missing: Record<TrackKind, MediaRange[]>;
  /** The last samples are needed. */
  isWhole: boolean;
}

interface PartOptions {
  /** In order, apart from each other. */
  ranges: readonly MediaRange[];
  kinds: readonly TrackKind[];
  /** Where their time counts from, seconds of the file; `null`: as `cutMp4` has it. */
  zeroS: number | null;
  isThere: IsThere;
}

/** The ends of ranges move to where frames begin, and those before and after are compared with them. */
const slackS = 0.5;

/**
 * Like `bytesOfCut`, for a file that is read as if it had no other samples than these, before ranges are cut of what comes of
 * it. Returns `null` if no track has samples, or one is presented in several parts.
 *
 * @throws as `bytesOfCut`
 */
export function samplesOfPart(path: string, { ranges, kinds, isThere, ...options }: PartOptions): PartNeeds | null {
  using file = openFile(path);
  const lists = readSampleLists(file).filter(({ length, track }) => length > 0 && kinds.includes(kindOf(track)));
  if (lists.length === 0 || lists.some(({ track }) => (track.formats[0]?.edits ?? []).length > 1)) return null;
  const findStart = startsThere(file, isThere);
  // The times of a track count from its first sample, those of the ranges from what is shown first; and the end says which of
  // the ranges are after it.
  const head = planCut(lists, [{ startS: 0, endS: leastS }], findStart, options.zeroS);
  const plan = planCut(lists, widened(ranges), findStart, options.zeroS);
  const needs: PartNeeds = {
    spans: [],
    zeroS: plan.zeroS,
    missing: { video: [], audio: [] },
    isWhole: plan.isBeyond,
  };
  for (const list of lists) {
    const groupsIn = ({ tracks }: typeof plan) => tracks.find((track) => track.list === list)?.groups ?? [];
    const start = { from: 0, to: Math.max(1, ...groupsIn(head).map(({ to }) => to)) };
    const end = plan.isBeyond ? [{ from: lastShown(list), to: list.length }] : [];
    const runs = joinRuns([start, ...groupsIn(plan), ...end]);
    needs.spans = [...needs.spans, ...bytesOf(list, runs)];
    for (const [i, { to }] of runs.entries()) {
      const left = { from: to, to: runs[i + 1]?.from ?? list.length };
      if (left.from < left.to) needs.missing[kindOf(list.track)].push(shownIn(list, left));
    }
  }
  needs.spans = joinSpans(needs.spans);
  return needs;
}

/** Less than a frame lasts, seconds. */
const leastS = 1e-3;

const kindOf = ({ formats }: SampleList["track"]): TrackKind => formats[0]!.kind;

/** Until a sample is there, nothing else may be needed. */
const startsThere =
  (file: OpenFile, isThere: IsThere): FindStart =>
  (list, index) => {
    const { offset, size } = list.at(index);
    return isThere({ start: offset, end: offset + size }) ? joinAt(file, list, index) : "start";
  };

/** Returns ranges that are longer at both ends, still apart from each other. */
function widened(ranges: readonly MediaRange[]): MediaRange[] {
  return ranges.map(({ startS, endS }, i) => {
    const before = ((ranges[i - 1]?.endS ?? -Infinity) + startS) / 2;
    const after = (endS + (ranges[i + 1]?.startS ?? Infinity)) / 2;
    return { startS: Math.max(0, before, startS - slackS), endS: Math.min(after, endS + slackS) };
  });
}

/** Returns the index of the sample that is presented last. */
function lastShown(list: SampleList): number {
  let last = 0;
  for (let index = 1; index < list.length; index += 1) if (list.pts(index) >= list.pts(last)) last = index;
  return last;
}

/** Returns the range from the start of the first sample to the start of the last one, in the order in which they are presented. */
function shownIn(list: SampleList, { from, to }: IndexRun): MediaRange {
  let [first, last] = [Infinity, -Infinity];
  for (let index = from; index < to; index += 1) {
    first = Math.min(first, list.pts(index));
    last = Math.max(last, list.pts(index));
  }
  const isLast = to === list.length;
  return { startS: secondsOf(list.track, first), endS: isLast ? Infinity : secondsOf(list.track, last + 1) };
}

function bytesOf(list: SampleList, runs: readonly IndexRun[]): ByteSpan[] {
  const spans: ByteSpan[] = [];
  for (const { from, to } of runs) {
    for (let index = from; index < to; index += 1) {
      const { offset, size } = list.at(index);
      const last = spans.at(-1);
      if (last?.end === offset) last.end += size;
      else spans.push({ start: offset, end: offset + size });
    }
  }
  return spans;
}
