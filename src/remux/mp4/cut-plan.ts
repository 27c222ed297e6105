import { type Edit, type MediaRange, sortedIndex, type TrackKind } from "../samples.ts";
import {
  createCutTrack,
  type CutTrack,
  type FindStart,
  firstIndex,
  leastS,
  type Part,
  type SampleGroup,
  startOf,
  type TakenSamples,
  takenOf,
} from "./cut-tracks.ts";
import type { SampleList } from "./read/sample-list.ts";

/** What a cut takes of the samples of a track, and how it presents them. */
export interface PlannedTrack {
  list: SampleList;
  /** Of the samples that are taken, from the decode time of the first. */
  edits: Edit[];
  /** In order; a range has at most one. */
  groups: SampleGroup[];
}

/** What of a source is presented; seconds from its start. */
export interface CutPosition {
  /** One after the other. */
  kept: readonly MediaRange[];
  /** Where the time of ranges counts from. */
  zeroS: number;
}

export interface Cut {
  /** The parts of the source, one after the other, seconds from its start. */
  kept: readonly MediaRange[];
  /** How long they are together. */
  durationS: number;
  /** What of these parts is before a track of the source starts or after it ends, if that is long there, or all of a part. */
  gaps: readonly (MediaRange & { kind: TrackKind })[];
  /** How many audio tracks of the source are not in it. */
  leftAudio: number;
}

export interface CutPlan extends CutPosition, Pick<Cut, "gaps"> {
  tracks: PlannedTrack[];
  /** Where the source ends. */
  endS: number;
  /** A range ends after that. */
  isBeyond: boolean;
}

/**
 * Plans a cut of a presentation with these tracks. Ranges count from the first frame shown of the video, or else from the
 * start; they are rounded to the nearest frame, and end with the media; those after it are left out. Of each, a track gets the samples from the sync sample
 * before, and edits that present the range alone. What is only decoded takes no time, so that players that ignore edits keep
 * the tracks in sync.
 *
 * @param ranges In order, apart from each other.
 * @param countsFromS Where they count from instead, seconds of the presentation; `null`: as above.
 */
export function planCut(
  lists: readonly SampleList[],
  ranges: readonly MediaRange[],
  findStart: FindStart,
  countsFromS: number | null = null,
): CutPlan {
  const tracks = lists.filter(({ length }) => length > 0).map((list) => createCutTrack(list, findStart));
  const video = tracks.find(({ isVideo }) => isVideo);
  const endS = Math.max(...tracks.map((track) => track.endS));
  const frames = video === undefined ? null : frameStarts(video);
  const ownZeroS = frames === null ? Math.min(...tracks.map(({ startS }) => startS)) : (frames[0] ?? 0);
  const zeroS = countsFromS ?? ownZeroS;
  let reachedS = -Infinity;
  const kept = ranges.flatMap((range) => {
    const asked = { startS: zeroS + range.startS, endS: Math.min(zeroS + range.endS, endS) };
    if (asked.startS >= endS - leastS) return [];
    const cut = video === undefined || frames === null ? lengthened(asked) : roundToFrames(asked, frames, video.endS);
    // A frame that two ranges are rounded to is in the first one.
    const startS = Math.max(cut.startS, reachedS);
    reachedS = Math.max(reachedS, cut.endS);
    return cut.endS > startS ? [{ startS, endS: cut.endS }] : [];
  });
  if (kept.length > 0) placeRanges(tracks, kept);
  const isBeyond = ranges.some((range) => zeroS + range.endS > endS);
  const source = { startS: Math.min(...tracks.map(({ startS }) => startS)), endS };
  const gaps = tracks.flatMap((track) => kept.flatMap((range) => gapsAtEnds(track, range, source)));
  return { tracks: tracks.filter(({ groups }) => groups.length > 0), kept, zeroS, endS, isBeyond, gaps };
}

/** Tracks of a presentation rarely end together: shorter gaps of it do not count, seconds. */
const longGapS = 1;
/** What a range has of a long gap counts if it is longer than a frame, seconds. */
const leastGapS = 0.1;

/** Returns what a range has of the gaps before a track starts and after it ends; of a short gap, only if the range has nothing else. */
function gapsAtEnds({ kind, startS, endS }: CutTrack, range: MediaRange, source: MediaRange): Cut["gaps"] {
  const ends = [
    { startS: source.startS, endS: startS },
    { startS: endS, endS: source.endS },
  ];
  return ends.flatMap((gap) => {
    const found = { kind, startS: Math.max(range.startS, gap.startS), endS: Math.min(range.endS, gap.endS) };
    const isLong = gap.endS - gap.startS > longGapS;
    const least = Math.min(isLong ? leastGapS : Infinity, range.endS - range.startS - leastS);
    return found.endS - found.startS > least ? [found] : [];
  });
}

/** Shorter audio is none: in ticks of a file it lasts no time. */
const leastAudioS = 0.001;

const lengthened = ({ startS, endS }: MediaRange): MediaRange => ({
  startS,
  endS: Math.max(endS, startS + leastAudioS),
});

/** What players (FFmpeg, Chromium) do not show of a frame that begins before an edit; longer ones are pictures that stand still, seconds. */
const longestPartS = 0.1;

/** Returns when each frame is shown, in order, seconds. */
function frameStarts({ list, parts }: CutTrack): Float64Array {
  const starts: number[] = [];
  for (const { startS, endS, media } of parts) {
    const to = media + (endS - startS) * list.timescale;
    const leastEnd = media + longestPartS * list.timescale;
    for (let i = 0; i < list.length; i++) {
      const pts = list.pts(i);
      const isShown = pts < to - 0.5 && (pts > media - 0.5 || pts + list.duration(i) > leastEnd);
      if (isShown) starts.push(startS + Math.max(0, pts - media) / list.timescale);
    }
  }
  return Float64Array.from(starts).toSorted();
}

/**
 * Rounds the ends of a range to where a frame begins or the last one ends, so that at least one frame is in it if it begins
 * within the video. After the video they stay.
 */
function roundToFrames(range: MediaRange, frames: Float64Array, videoEndS: number): MediaRange {
  const round = (timeS: number): number => {
    if (timeS >= videoEndS) return timeS;
    const next = sortedIndex(frames, (frameS) => frameS >= timeS);
    const [beforeS, afterS] = [frames[next - 1] ?? -Infinity, frames[next] ?? videoEndS];
    return timeS - beforeS < afterS - timeS ? beforeS : afterS;
  };
  const lastS = frames.at(-1) ?? videoEndS;
  const startS = range.startS < videoEndS ? Math.min(round(range.startS), lastS) : range.startS;
  const leastEndS = frames[sortedIndex(frames, (frameS) => frameS >= startS) + 1] ?? videoEndS;
  return { startS, endS: Math.max(round(range.endS), leastEndS) };
}

/** Adds to each track its samples of each range, and the edits that present it. */
function placeRanges(tracks: readonly CutTrack[], kept: readonly MediaRange[]): void {
  const needed = kept.map((range, index) => tracks.flatMap((track) => takenOf(track, range, index > 0) ?? []));
  for (const track of tracks) delayDecoding(needed.flat().filter((each) => each.track === track));
  let presentedS = 0;
  const zeroS = kept[0]!.startS;
  for (const [index, range] of kept.entries()) {
    const own = needed[index]!;
    const moveS = Math.max(...own.map(leastMove));
    for (const group of own) {
      const { groups, list } = group.track;
      // The first edit of a track says when it is presented.
      const addedS = groups.length > 0 ? moveS : zeroS + presentedS - range.startS;
      const shift = Math.round(group.offset + addedS * list.timescale);
      groups.push({ ...group, range: index, shift, decodeShift: shift - group.earlier });
      group.track.writtenS = { decoded: group.decoded.endS + addedS, presented: group.presented.endS + addedS };
      addEdits(group, shift, presentedS - range.startS);
    }
    presentedS += range.endS - range.startS;
  }
}

/**
 * Returns how much later than in the source samples must be so that they are decoded and presented after those of the track before
 * them. Not longer after: Chromium takes the time to the next decoding for how long a frame is shown, when it seeks.
 */
function leastMove({ track: { writtenS }, decoded, presented }: TakenSamples): number {
  return Math.max(writtenS.decoded - decoded.startS, writtenS.presented - presented.startS);
}

/**
 * Lets video be decoded earlier, so that in each range the time from the decoding of its first sample to the start of the range is the
 * same: otherwise FFmpeg presents the later ranges too early or too late by the difference. With several ranges it is at least two
 * frames: Chromium shows nothing of the first one if no sample is presented later than decoded.
 */
function delayDecoding(taken: readonly TakenSamples[]): void {
  const least = taken.length > 1 ? 2 * (taken[0]?.track.list.duration(0) ?? 0) : 0;
  const longest = Math.max(least, ...taken.map(({ decodeDelay }) => decodeDelay));
  for (const group of taken.filter(({ track }) => track.isVideo)) {
    group.earlier = longest - group.decodeDelay;
    group.decoded.startS -= group.earlier / group.track.list.timescale;
    group.decoded.endS -= group.earlier / group.track.list.timescale;
  }
}

/** @param delayS What is presented before the range, less its start in the source. */
function addEdits({ track, parts }: TakenSamples, shift: number, delayS: number): void {
  const { list, groups, edits } = track;
  const { timescale } = list;
  const [first] = groups;
  const start = startOf(first!);
  const firstDts = (first!.times.get(start)?.dts ?? list.dts(start)) + first!.decodeShift;
  for (const part of parts) {
    const isFirst = edits.length === 0;
    const isKept = track.isVideo || (isFirst && !track.hasWholePackets);
    const { startS, endS, media } = isKept ? part : atPacket(list, part, isFirst);
    const gap = isFirst ? 0 : Math.round((startS + delayS - track.presentedS) * timescale);
    const last = edits.at(-1);
    // The part before ends where a packet of this one starts.
    const isNear = !track.isVideo && last !== undefined && Math.abs(gap) < longestNear(list, media);
    if (isNear) last.durationTicks += gap;
    edits.push({
      mediaTicks: media + shift - firstDts,
      durationTicks: Math.round((endS - startS) * timescale),
      emptyTicks: isNear ? 0 : Math.max(0, gap),
    });
    track.presentedS = endS + delayS;
  }
}

/** Lets a part start with the packet whose start is nearest, or is the next: many players present only whole ones. */
function atPacket(list: SampleList, { startS, endS, media }: Part, isNext: boolean): Part {
  const next = firstIndex(list, 0, (index) => list.pts(index) >= media);
  const [before, after] = [list.pts(Math.max(0, next - 1)), list.pts(next)];
  const nearest = media - before < after - media && !isNext ? before : after;
  return { startS: startS + (nearest - media) / list.timescale, endS, media: nearest };
}

/** Returns how long the longer one of the packets lasts between which a media time is. */
function longestNear(list: SampleList, media: number): number {
  const next = firstIndex(list, 0, (index) => list.pts(index) >= media);
  return Math.max(list.duration(0), list.duration(Math.max(0, next - 1)), list.duration(next));
}
