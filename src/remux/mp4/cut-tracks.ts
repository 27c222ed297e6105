import { nameCodec } from "../codec-name.ts";
import type { Edit, MediaRange } from "../samples.ts";
import { leadTicksOf } from "./audio-lead.ts";
import type { Join, Start } from "./joins.ts";
import type { SampleList } from "./read/sample-list.ts";

/** Less than any frame or packet lasts, seconds. */
export const leastS = 1e-4;

/** Samples of one range that follow each other in decode order. */
export interface SampleGroup {
  range: number;
  from: number;
  /** After the last one. */
  to: number;
  /** How it follows another range. */
  join: Join;
  /** Indexes of samples that are left out: pictures that are shown before the first one refer to others before that, too. */
  left: ReadonlySet<number>;
  /** Those of samples that do not keep their own, by index. If `join` is "reset", the sample at `from` is there once more, as if it were before it. */
  times: ReadonlyMap<number, SampleTimes>;
  /** What is added to their presentation and decode times, ticks. */
  shift: number;
  decodeShift: number;
  /** When they are presented in the source, seconds from its start. */
  taken: MediaRange;
}

/** Returns how decoding starts with a sync sample; `null`: it cannot. */
export type FindStart = (list: SampleList, index: number) => Start | null;

/** Returns the number of the first sample of a group: an index, or the one before the first. */
export const startOf = ({ from, join }: Pick<SampleGroup, "from" | "join">): number =>
  from - (join === "reset" ? 1 : 0);

/** Returns the index of a sample by its number in a group. */
export const indexIn = ({ from }: Pick<SampleGroup, "from">, number: number): number => Math.max(from, number);

export type CutTrack = ReturnType<typeof createCutTrack>;

/** Creates a track that is cut, of all its samples; `findStart` says where decoding can start. */
export function createCutTrack(list: SampleList, findStart: FindStart) {
  const [format] = list.track.formats;
  const codec = nameCodec(format!.sampleEntry);
  const parts = partsOf(list);
  const starts = new Map<number, Start | null>();
  return {
    list,
    kind: format!.kind,
    isVideo: format!.kind === "video",
    codec,
    /** FFmpeg takes no part of a packet of Vorbis away. */
    hasWholePackets: codec === "Vorbis",
    parts,
    startS: parts[0]?.startS ?? 0,
    endS: parts.at(-1)?.endS ?? 0,
    edits: [] as Edit[],
    groups: [] as SampleGroup[],
    /** Reads a sample once only, which may have megabytes. `isJoin`: others come before it. */
    findJoin(index: number, isJoin: boolean): Join | null {
      if (!starts.has(index)) starts.set(index, findStart(list, index));
      const start = starts.get(index) ?? null;
      return start === "alone" ? (isJoin ? null : "start") : start;
    },
    /** Where what is presented of it ends in the cut, seconds. */
    presentedS: 0,
    /** Where the decoding and the presentation of its samples end, with what edits leave out; seconds. */
    writtenS: { decoded: -Infinity, presented: -Infinity },
  };
}

/** A part of a track that is presented. */
export interface Part {
  /** In the presentation, seconds. */
  startS: number;
  endS: number;
  /** Media time at its start, ticks. */
  media: number;
}

/** Returns what is presented of a track, without what its edits have before its first sample and after its last. */
function partsOf(list: SampleList): Part[] {
  const { track, timescale } = list;
  const edits = track.formats[0]!.edits ?? [{ mediaTicks: 0, durationTicks: Infinity, emptyTicks: 0 }];
  let [first, last] = [Infinity, -Infinity];
  for (let i = 0; i < list.length; i++) {
    first = Math.min(first, list.pts(i));
    last = Math.max(last, list.pts(i) + list.duration(i));
  }
  let at = 0;
  return edits.flatMap(({ mediaTicks, durationTicks, emptyTicks }) => {
    const start = at + emptyTicks;
    at = start + durationTicks;
    const from = Math.max(mediaTicks, first);
    const to = Math.min(mediaTicks + durationTicks, last);
    const startS = (start + from - mediaTicks) / timescale;
    return to > from ? [{ startS, endS: startS + (to - from) / timescale, media: from }] : [];
  });
}

/** Times of a sample in ticks. */
interface SampleTimes {
  dts: number;
  pts: number;
}

/** Chromium leaves out a frame within 1 ms after another, at joins even after one that an edit hides; seconds. */
const leadGapS = 0.002;

/**
 * Returns other times for the samples of video that are decoded and not shown: those before a range (media times) shortly before it, those
 * after it shortly after it, a tick apart. At their own times they would be at those of the range before, by which Chromium finds samples
 * when it seeks, or keep the next range away. Players that ignore edits show them in no time.
 *
 * @param first Index of the first sample in decode order that is shown.
 */
function hiddenTimes(
  list: SampleList,
  { from, to, join, left, first }: Pick<SampleGroup, "from" | "to" | "join" | "left"> & { first: number },
  [startTicks, endTicks]: readonly [number, number],
): Map<number, SampleTimes> {
  const gap = Math.ceil(leadGapS * list.timescale);
  const taken = Array.from({ length: to - from }, (_, n) => from + n).filter((index) => !left.has(index));
  const inOrder = (isIn: (pts: number) => boolean) =>
    taken.filter((index) => isIn(list.pts(index))).toSorted((a, b) => list.pts(a) - list.pts(b));
  const [hidden, later] = [inOrder((pts) => pts < startTicks), inOrder((pts) => pts >= endTicks)];
  const times = new Map<number, SampleTimes>();
  const note = (index: number, pts: number) => times.set(index, { dts: list.dts(index), pts });
  for (const [rank, index] of hidden.entries()) note(index, startTicks - gap - (hidden.length - 1 - rank));
  for (const [rank, index] of later.entries()) note(index, Math.min(list.pts(index), endTicks + gap + rank));
  for (let index = from; index < first; index++) {
    times.set(index, { pts: list.pts(index), ...times.get(index), dts: list.dts(first) - (first - index) });
  }
  const resetTimes = { dts: list.dts(first) - (first - from) - 1, pts: startTicks - gap - hidden.length };
  if (join === "reset") times.set(from - 1, resetTimes);
  return times;
}

/** Returns the indexes of the samples of a group that are decoded after its first one, and would be presented before it. */
function leadingIn(list: SampleList, from: number, to: number): ReadonlySet<number> {
  const found = new Set<number>();
  if (from === 0) return found;
  for (let index = from + 1; index < to; index++) if (list.pts(index) < list.pts(from)) found.add(index);
  return found;
}

const none: ReadonlyMap<number, SampleTimes> = new Map();

/** Samples that a range needs of a track. */
export type TakenSamples = NonNullable<ReturnType<typeof takenOf>>;

/**
 * Returns which samples of a track a range needs; `null`: none. Its seconds are those of the presentation.
 *
 * @param isJoin They follow those of another range.
 */
export function takenOf(track: CutTrack, range: MediaRange, isJoin: boolean) {
  const { list, codec, isVideo } = track;
  const { timescale } = list;
  const parts = partsWithin(track, range);
  const [first] = parts;
  if (first === undefined) return null;
  const fromTicks = Math.min(...parts.map(({ media }) => media));
  const toTicks = Math.max(...parts.map(({ media, startS, endS }) => media + Math.round((endS - startS) * timescale)));
  const needed = neededOf(list, fromTicks, toTicks);
  if (needed === null) return null;
  // Added to media times: the presentation time of the first part.
  const offset = first.startS * timescale - first.media;
  const toS = (ticks: number) => (ticks + offset) / timescale;
  const lead = isVideo ? Infinity : leadTicksOf(list, codec, needed);
  const findJoin = (index: number) => (isVideo ? track.findJoin(index, isJoin) : "start");
  const from = leadOf(list, isVideo ? needed : withRoll(list, needed), lead, (index) => findJoin(index) !== null);
  const join = (from > 0 ? findJoin(from) : null) ?? "start";
  // The end of audio may move by a part of a packet.
  const to = Math.min(needed.last + (isVideo ? 1 : 2), list.length);
  const isFirst = (index: number) => list.pts(index) >= fromTicks && list.pts(index) < toTicks;
  const firstShown = firstIndex(list, from, isFirst);
  const left = isVideo ? leadingIn(list, from, to) : new Set<number>();
  const times = isVideo ? hiddenTimes(list, { from, to, join, left, first: firstShown }, [fromTicks, toTicks]) : none;
  const decoded = { startS: Infinity, endS: -Infinity };
  const [presented, taken] = [{ ...decoded }, { ...decoded }];
  for (let i = startOf({ from, join }); i < to; i++) {
    if (left.has(i)) continue;
    const { dts, pts } = times.get(i) ?? { dts: list.dts(i), pts: list.pts(i) };
    widen(decoded, toS(dts), toS(dts + list.duration(i)));
    widen(presented, toS(pts), toS(pts + (pts === list.pts(i) ? list.duration(i) : 1)));
    if (i >= from) widen(taken, toS(list.pts(i)), list.pts(i) < toTicks ? toS(list.pts(i) + 1) : -Infinity);
  }
  const decodeDelay = fromTicks - list.dts(firstShown);
  return { track, parts, from, to, join, left, times, offset, decodeDelay, earlier: 0, decoded, presented, taken };
}

function widen(range: MediaRange, startS: number, endS: number): void {
  range.startS = Math.min(range.startS, startS);
  range.endS = Math.max(range.endS, endS);
}

function partsWithin({ list, parts }: CutTrack, range: MediaRange): Part[] {
  return parts.flatMap((part) => {
    const startS = Math.max(part.startS, range.startS);
    const endS = Math.min(part.endS, range.endS);
    const media = Math.round(part.media + (startS - part.startS) * list.timescale);
    return endS - startS < leastS ? [] : [{ startS, endS, media }];
  });
}

/** Returns the first index from `from` on for which `isWanted` is true, or the last one. */
export function firstIndex(list: SampleList, from: number, isWanted: (index: number) => boolean): number {
  let index = from;
  while (index < list.length - 1 && !isWanted(index)) index++;
  return index;
}

/** Returns the first and the last sample in decode order that are presented at these media times, and the earliest time. */
function neededOf(list: SampleList, fromTicks: number, toTicks: number) {
  let [first, last, earliest] = [-1, -1, Infinity];
  for (let i = 0; i < list.length; i++) {
    const pts = list.pts(i);
    if (pts >= toTicks || pts + list.duration(i) <= fromTicks) continue;
    if (first < 0) first = i;
    last = i;
    earliest = Math.min(earliest, pts);
  }
  return first < 0 ? null : { first, last, earliest };
}

/** Returns them with the samples before that have to be decoded, as the groups of audio say. */
function withRoll<Needed extends { first: number; last: number }>(list: SampleList, needed: Needed): Needed {
  let { first } = needed;
  for (let i = needed.first; i <= needed.last; i++) first = Math.min(first, i - list.roll(i));
  return { ...needed, first: Math.max(0, first) };
}

/** Returns where decoding has to start: at a sync sample that no needed one is presented before, no later than `leadTicks`. */
function leadOf(
  list: SampleList,
  { first, earliest }: { first: number; earliest: number },
  leadTicks: number,
  isUsable: (index: number) => boolean,
): number {
  for (let i = first; i > 0; i--) {
    const pts = list.pts(i);
    if (list.isSync(i) && pts <= earliest && pts <= leadTicks && isUsable(i)) return i;
  }
  return 0;
}
