import { ServiceError } from "../../model/errors.ts";
import { nameCodec } from "../codec-name.ts";
import type { Edit } from "../samples.ts";
import type { SampleList } from "./read/sample-list.ts";

/** A part of a presentation, seconds from its start. */
export interface MediaRange {
  startS: number;
  /** Infinity: to the end. */
  endS: number;
}

/** What a cut takes of the samples of a track, and how it presents them. */
export interface PlannedTrack {
  list: SampleList;
  /** Of the samples that are taken, from the decode time of the first. */
  edits: Edit[];
  /** In order; a range has at most one. */
  groups: SampleGroup[];
}

/** Samples of one range that follow each other in decode order. */
export interface SampleGroup {
  /** Index of the range. */
  range: number;
  from: number;
  /** After the last one. */
  to: number;
  /** What is added to their presentation and decode times, ticks. */
  shift: number;
  decodeShift: number;
}

export interface CutPlan {
  tracks: PlannedTrack[];
  /** What of the source is presented, one after the other: seconds from the start of the source. */
  kept: MediaRange[];
}

/**
 * Plans a cut of a presentation with these tracks. Ranges count from the first frame shown of the video, or else from the
 * start; they are rounded to the nearest frame, and end with the media. Of each, a track gets the samples from the sync sample
 * before, and edits that present the range alone. All tracks get about the same time before a range, so that players
 * that ignore edits keep them in sync.
 *
 * @param ranges In order, apart from each other.
 * @throws ServiceError `format_unavailable` if nothing is within the ranges.
 */
export function planCut(lists: readonly SampleList[], ranges: readonly MediaRange[]): CutPlan {
  const tracks = lists.filter(({ length }) => length > 0).map(createCutTrack);
  const video = tracks.find(({ isVideo }) => isVideo);
  const endS = Math.max(...tracks.map((track) => track.endS));
  const frames = video === undefined ? null : frameStarts(video);
  const zeroS = frames === null ? Math.min(...tracks.map(({ startS }) => startS)) : (frames[0] ?? 0);
  const kept = ranges.flatMap((range) => {
    const asked = { startS: zeroS + range.startS, endS: Math.min(zeroS + range.endS, endS) };
    if (asked.startS >= endS - leastS) return [];
    const cut = video === undefined || frames === null ? asked : roundToFrames(asked, frames, video.endS);
    return cut.endS > cut.startS ? [cut] : [];
  });
  if (kept.length === 0) {
    const lastsS = endS - zeroS;
    const rule = `none of the ${ranges.length} ranges is within the media, which last ${lastsS.toFixed(3)} s`;
    throw new ServiceError("format_unavailable", rule);
  }
  placeRanges(tracks, kept, video);
  return { tracks: tracks.filter(({ groups }) => groups.length > 0), kept };
}

/** Less than any frame or packet lasts, seconds. */
const leastS = 1e-4;

type CutTrack = ReturnType<typeof createCutTrack>;

function createCutTrack(list: SampleList) {
  const { track, timescale } = list;
  const [format] = track.formats;
  const isOpus = nameCodec(format!.sampleEntry) === "Opus";
  const parts = partsOf(list);
  return {
    list,
    isVideo: format!.kind === "video",
    /** RFC 7845 §4.6: 80 ms; of other codecs one packet. */
    preroll: isOpus ? 0.08 * timescale : 1,
    parts,
    startS: parts[0]?.startS ?? 0,
    endS: parts.at(-1)?.endS ?? 0,
    edits: [] as Edit[],
    groups: [] as SampleGroup[],
    /** Where what is presented of it ends in the cut, seconds. */
    presentedS: 0,
  };
}

/** A part of a track that is presented. */
interface Part {
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

/** Returns when each frame is shown, in order, seconds. */
function frameStarts({ list, parts }: CutTrack): Float64Array {
  const starts: number[] = [];
  for (const { startS, endS, media } of parts) {
    const to = media + (endS - startS) * list.timescale;
    for (let i = 0; i < list.length; i++) {
      const pts = list.pts(i);
      const isShown = pts < to - 0.5 && pts + list.duration(i) > media;
      if (isShown) starts.push(startS + Math.max(0, pts - media) / list.timescale);
    }
  }
  return Float64Array.from(starts).toSorted();
}

/**
 * Rounds the ends of a range to where a frame begins or the last one ends, so that at least one frame is in it. After the
 * video they stay.
 */
function roundToFrames(range: MediaRange, frames: Float64Array, videoEndS: number): MediaRange {
  const round = (timeS: number): number => {
    if (timeS >= videoEndS) return timeS;
    const next = firstFrom(frames, timeS);
    const [beforeS, afterS] = [frames[next - 1] ?? -Infinity, frames[next] ?? videoEndS];
    return timeS - beforeS < afterS - timeS ? beforeS : afterS;
  };
  const startS = round(range.startS);
  const leastEndS = frames[firstFrom(frames, startS) + 1] ?? videoEndS;
  return { startS, endS: Math.max(round(range.endS), leastEndS) };
}

/** Returns the index of the first number that is not less than `value`. */
function firstFrom(sorted: Float64Array, value: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Adds to each track its samples of each range, and the edits that present it. */
function placeRanges(tracks: readonly CutTrack[], kept: readonly MediaRange[], video: CutTrack | undefined): void {
  const taken = kept.map((range) => {
    const leadS = video === undefined ? Infinity : (takenOf(video, range, Infinity)?.leadS ?? Infinity);
    return tracks.flatMap((track) => takenOf(track, range, leadS) ?? []);
  });
  for (const track of tracks) delayDecoding(taken.flat().filter((each) => each.track === track));
  // On the timeline of the cut with all its samples, and on that of what it presents.
  let mediaEndS = -Infinity;
  let presentedS = 0;
  const zeroS = kept[0]!.startS;
  for (const [index, range] of kept.entries()) {
    const own = taken[index]!;
    const moveS = mediaEndS === -Infinity ? 0 : mediaEndS - Math.min(...own.map(({ fromS }) => fromS));
    for (const group of own) {
      const { groups, list } = group.track;
      // The first edit of a track says when it is presented.
      const addedS = groups.length > 0 ? moveS : zeroS + presentedS - range.startS;
      const shift = Math.round(group.offset + addedS * list.timescale);
      groups.push({ range: index, from: group.from, to: group.to, shift, decodeShift: shift - group.earlier });
      addEdits(group, shift, presentedS - range.startS);
    }
    mediaEndS = Math.max(mediaEndS, ...own.map(({ toS }) => toS + moveS));
    presentedS += range.endS - range.startS;
  }
}

type TakenSamples = NonNullable<ReturnType<typeof takenOf>>;

/** Returns which samples of a track a range needs; `null`: none. Its seconds are those of the presentation. */
function takenOf(track: CutTrack, range: MediaRange, leadS: number) {
  const { list, preroll, isVideo } = track;
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
  const lead = isVideo ? Infinity : Math.min(leadS * timescale - offset, needed.earliest - preroll);
  const from = leadOf(list, needed, lead);
  // The end of audio may move by a part of a packet.
  const to = Math.min(needed.last + (isVideo ? 1 : 2), list.length);
  let [earliest, latest, shown] = [Infinity, -Infinity, Infinity];
  for (let i = from; i < to; i++) {
    const [dts, pts, duration] = [list.dts(i), list.pts(i), list.duration(i)];
    earliest = Math.min(earliest, dts, pts);
    latest = Math.max(latest, dts + duration, pts + duration);
    shown = Math.min(shown, pts);
  }
  const toS = (ticks: number) => (ticks + offset) / timescale;
  const isFirst = (index: number) => list.pts(index) >= first.media && list.pts(index) < toTicks;
  const decodeDelay = first.media - list.dts(firstIndex(list, from, isFirst));
  const extent = { fromS: toS(earliest), toS: toS(latest), leadS: toS(shown) };
  return { track, parts, from, to, offset, decodeDelay, earlier: 0, ...extent };
}

/** Returns what of a track is presented in a range. */
function partsWithin({ list, parts }: CutTrack, range: MediaRange): Part[] {
  return parts.flatMap((part) => {
    const startS = Math.max(part.startS, range.startS);
    const endS = Math.min(part.endS, range.endS);
    const media = Math.round(part.media + (startS - part.startS) * list.timescale);
    return endS - startS < leastS ? [] : [{ startS, endS, media }];
  });
}

/** Returns the first index from `from` on for which `isWanted` is true, or the last one. */
function firstIndex(list: SampleList, from: number, isWanted: (index: number) => boolean): number {
  let index = from;
  while (index < list.length - 1 && !isWanted(index)) index++;
  return index;
}

/**
 * Lets video be decoded so early that the same time passes in each range from the decoding of the first sample that is in
 * the range to the start of the range: FFmpeg presents a range after the first that much too early or late.
 */
function delayDecoding(taken: readonly TakenSamples[]): void {
  const longest = Math.max(...taken.map(({ decodeDelay }) => decodeDelay));
  for (const group of taken.filter(({ track }) => track.isVideo)) {
    group.earlier = longest - group.decodeDelay;
    group.fromS -= group.earlier / group.track.list.timescale;
  }
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

/** Returns where decoding has to start: at a sync sample that no needed one is presented before, no later than `leadTicks`. */
function leadOf(list: SampleList, { first, earliest }: { first: number; earliest: number }, leadTicks: number): number {
  let from = 0;
  for (let i = 0; i <= first; i++) {
    if (!list.isSync(i) || list.pts(i) > earliest) continue;
    if (i > 0 && list.pts(i) > leadTicks) break;
    from = i;
  }
  return from;
}

/** @param delayS What is presented before the range, less its start in the source. */
function addEdits({ track, parts }: TakenSamples, shift: number, delayS: number): void {
  const { list, groups, edits } = track;
  const { timescale } = list;
  const [first] = groups;
  const firstDts = list.dts(first!.from) + first!.decodeShift;
  for (const part of parts) {
    const { startS, endS, media } = edits.length === 0 || track.isVideo ? part : atPacket(list, part);
    const gap = edits.length === 0 ? 0 : Math.round((startS + delayS - track.presentedS) * timescale);
    const last = edits.at(-1);
    // The part before ends where a packet of this one starts.
    const isNear = !track.isVideo && last !== undefined && Math.abs(gap) < list.duration(0);
    if (isNear) last.durationTicks += gap;
    edits.push({
      mediaTicks: media + shift - firstDts,
      durationTicks: Math.round((endS - startS) * timescale),
      emptyTicks: isNear ? 0 : Math.max(0, gap),
    });
    track.presentedS = endS + delayS;
  }
}

/** Lets a part start with the packet whose start is nearest: many players present only whole ones. */
function atPacket(list: SampleList, { startS, endS, media }: Part): Part {
  const next = firstIndex(list, 0, (index) => list.pts(index) >= media);
  const [before, after] = [list.pts(Math.max(0, next - 1)), list.pts(next)];
  const nearest = media - before < after - media ? before : after;
  return { startS: startS + (nearest - media) / list.timescale, endS, media: nearest };
}
