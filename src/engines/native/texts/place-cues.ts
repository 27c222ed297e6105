import { cutTimes, type Cue, moveCue, moveInnerTimes } from "../../../remux/additions.ts";
import type { CutPosition } from "../../../remux/mp4/cut-plan.ts";
import type { TimestampMap } from "../../../subtitles/timed-text.ts";
import { joinCues } from "../../../subtitles/join.ts";

/** The cues of a file or segment, with times of their own. */
export interface TextPart {
  cues: readonly Cue[];
  map: TimestampMap | null;
  /** Where the segment is in its list; `null`: a file of the whole, whose times count from the start of the video. */
  place: TextPlace | null;
  /** The times are media times; default: those of the text format. */
  isMp4?: boolean;
}

interface TextPlace {
  timeline: number;
  /** As in `Segment`. */
  offsetS: number | null;
  /** Sum of the durations before it, and its own, seconds. */
  fromS: number;
  lastsS: number;
}

/** Where the media of a file are on the presentation timeline. */
export interface MediaPosition {
  /** Presentation time of the start of the file, seconds. */
  originS: number;
  /** Returns the seconds to add to the media times of a timeline; undefined if no media have it. */
  offsetOf(timeline: number): number | undefined;
  /** What of the media is presented; default: all. */
  cut?: CutPosition;
  /** The file is as published, and keeps what it says itself; default: it has only what is added. */
  isPublished?: boolean;
}

/** Returns the position of a file of which all is presented, whose media have one timeline. */
export const positionFrom = (originS: number): MediaPosition => ({ originS, offsetOf: () => 0 });

const ticksPerSecond = 90_000;
const wrapS = 2 ** 33 / ticksPerSecond;

/** Returns the cues on the timeline of the file; those of several segments are joined. The cues that it gets may get other times. */
export function placeCues(parts: readonly TextPart[], media: MediaPosition): readonly Cue[] {
  const segments = parts.filter(({ place }) => place?.offsetS === null);
  const groups = [segments.filter(hasTimes), segments.filter((part) => !hasTimes(part))];
  const fromStart = new Set(groups.filter((group) => countsFromStart(group, media)).flat());
  const shifts = parts.map((part) => (fromStart.has(part) ? 0 : shiftOf(part, media)));
  for (const [i, { cues }] of parts.entries()) move(cues, shifts[i]!);
  const joined = parts.length === 1 ? parts[0]!.cues : joinCues(parts.map(({ cues }) => cues));
  return media.cut === undefined ? joined : cutTimes(joined, media.cut.kept, moveCue);
}

/** Whether it states which media time its cues have: by a timestamp map, or as MP4 does. */
const hasTimes = ({ map, isMp4 }: TextPart): boolean => map !== null || isMp4 === true;

function move(cues: readonly Cue[], byS: number): void {
  if (byS === 0) return;
  for (const cue of cues) {
    cue.startS += byS;
    cue.endS += byS;
    cue.text = moveInnerTimes(cue.text, byS);
  }
}

/**
 * Returns the seconds from the times of the cues to those of the file, as they are stated. Of a segment that has none of its cues then: as they are on
 * another timeline of the media, if all are in it then, as its list may lack discontinuities of the media (RFC 8216bis §4.4.4.3), or have others.
 */
function shiftOf(part: TextPart, { originS, offsetOf, cut }: MediaPosition): number {
  const { cues, place, map } = part;
  if (place === null) return cut?.zeroS ?? 0;
  const { timeline, offsetS, fromS } = place;
  if (offsetS !== null) return offsetS - originS;
  const shiftWith = (addedS: number) => {
    if (map === null) return addedS - originS;
    const shiftS = map.mpegTs / ticksPerSecond - map.localS + addedS - originS;
    // Timestamps wrap: the first cue is where it is nearest to its segment. A map may be far from its cues.
    const wraps = Math.round((fromS - shiftS - (cues[0]?.startS ?? 0)) / wrapS);
    return shiftS + wraps * wrapS;
  };
  const statedS = shiftWith(offsetOf(timeline) ?? 0);
  if (cues.length === 0 || countIn(part, statedS) > 0) return statedS;
  const others = [...offsetsFrom(offsetOf, timeline, -1), ...offsetsFrom(offsetOf, timeline, 1)];
  return others.map(shiftWith).find((shiftS) => countIn(part, shiftS) === cues.length) ?? statedS;
}

const maxTimelines = 64;

/** Yields the offsets of the timelines before one, or after it, the nearest first. */
function* offsetsFrom(offsetOf: MediaPosition["offsetOf"], timeline: number, step: 1 | -1): Generator<number> {
  for (let n = 1; n <= maxTimelines; n++) {
    const offset = offsetOf(timeline + n * step);
    if (offset === undefined) return;
    yield offset;
  }
}

/** Segments are cut where cues are long. */
const toleranceS = 2;

/**
 * Whether the times of segments count from the start of the list, as many packagers write them, rather than being media times (RFC 8216
 * §3.5): by which of both puts more cues into their segments. What states media times is ignored only if they put none there, and all are there without them.
 */
function countsFromStart(parts: readonly TextPart[], media: MediaPosition): boolean {
  const fromStart = countWithin(parts, () => 0);
  const stated = countWithin(parts, (part) => shiftOf(part, media));
  const total = parts.reduce((sum, { cues }) => sum + cues.length, 0);
  return parts.some(hasTimes) ? stated === 0 && fromStart === total : fromStart >= stated;
}

function countWithin(parts: readonly TextPart[], shift: (part: TextPart) => number): number {
  return parts.reduce((sum, part) => sum + countIn(part, shift(part)), 0);
}

/** Returns how many cues of a segment are in it if they are moved by so many seconds. */
function countIn({ cues, place }: TextPart, shiftS: number): number {
  if (place === null) return 0;
  const [fromS, toS] = [place.fromS - toleranceS, place.fromS + place.lastsS + toleranceS];
  return cues.filter(({ startS, endS }) => endS + shiftS >= fromS && startS + shiftS <= toS).length;
}
