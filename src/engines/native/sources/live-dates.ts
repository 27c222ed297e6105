import type { Segment, SegmentList } from "../../../manifests/segments.ts";

/** A segment of a recording: numbers and timelines increase through it, whatever its playlist says. */
export interface RecordedSegment extends Segment {
  /** What was added to those of the playlist (DASH: to its times, milliseconds); default nothing. */
  moved?: {
    sequence: number;
    timeline: number;
    /** How often the times of its MPD have fallen back, and what has been added to its dates since, milliseconds. */
    restart?: Restart;
  };
  /** An earlier run has listed it. */
  isOld?: boolean;
}

interface Restart {
  count: number;
  addedMs: number;
}

/** Lists in a row that go back until they are no old ones of a cache; of dated lists, those that have grown. */
export const maxBack = 3;

/** Some packagers state an origin that differs a little each time. */
const sameOriginMs = 1_000;

/** Where the times of a live MPD fell back although its origin is the same; all tracks of a recording continue at the same times. */
export class Restarts {
  readonly #addedMs: number[] = [];
  /** End of what was recorded of any track, milliseconds since 1970. */
  #reachedMs = Number.NEGATIVE_INFINITY;

  add({ dateMs, durationS, moved }: RecordedSegment): void {
    if (dateMs !== undefined) this.#reachedMs = Math.max(this.#reachedMs, dateMs + 1000 * durationS);
    if (moved?.restart !== undefined) this.#addedMs[moved.restart.count - 1] ??= moved.restart.addedMs;
  }

  /** Whether a track has gone on after the restart `count`. */
  has(count: number): boolean {
    return this.#addedMs[count - 1] !== undefined;
  }

  /** Returns what is added to dates after the restart `count`; `first`: what is listed first then. */
  addedMs(count: number, { dateMs = 0 }: Segment): number {
    return (this.#addedMs[count - 1] ??= this.#reachedMs - dateMs);
  }
}

/** Finds the segments of a live list that are new by their dates, which are exact. */
export class LiveDates {
  readonly #restarts: Restarts;
  /** Whether a segment was recorded with its date. */
  readonly #isKnown: (segment: Segment) => boolean;
  /** Lists in a row that end before what was recorded: how many have grown, the latest end, and the segments of all by their dates. */
  #back: { count: number; endMs: number; segments: Map<number, Segment> } | null = null;

  constructor(restarts: Restarts, isKnown: (segment: Segment) => boolean) {
    this.#restarts = restarts;
    this.#isKnown = isKnown;
  }

  /** How many lists in a row have grown, and end before what was recorded: other media may be under its names and dates. */
  get countBack(): number {
    return this.#back?.count ?? 0;
  }

  /** Returns the segments that come after `last`; one number is left free where their times fell back, or may have. */
  newIn(list: SegmentList, last: RecordedSegment): RecordedSegment[] {
    const restart = last.moved?.restart;
    const addedMs = restart?.addedMs ?? 0;
    const { originMs = 0 } = list.segments[0]!;
    // Of an MPD with another origin, the dates are right.
    const isSame = Math.abs(originMs + addedMs - (last.originMs ?? originMs)) < sameOriginMs;
    const segments = isSame ? moveDates(list.segments, addedMs) : list.segments;
    const isBack = segments.at(-1)!.dateMs! < last.dateMs! - 500 * last.durationS;
    // A list of a restarted stream may have grown beyond what this track has recorded before another one shows the restart.
    if (isBack || (isSame && this.countBack > 0 && this.#restarts.has((restart?.count ?? 0) + 1))) {
      return this.#findRestart(list, { segments, last });
    }
    const isDoubtful = this.countBack >= maxBack;
    const next = isDoubtful ? { count: (restart?.count ?? 0) + 1, addedMs } : restart;
    const found = newByDate(segments, isDoubtful ? leaveFree(last) : last, isSame ? next : undefined);
    if (found.length > 0 || !isDoubtful) this.#back = null;
    return found;
  }

  /** Returns the segments of several lists that end before `last`, once they are no old ones; `segments`: as they were moved so far. */
  #findRestart(
    list: SegmentList,
    { segments, last }: { segments: readonly Segment[]; last: RecordedSegment },
  ): RecordedSegment[] {
    const endMs = list.segments.at(-1)!.dateMs!;
    const back = (this.#back ??= { count: 0, endMs: Number.NEGATIVE_INFINITY, segments: new Map<number, Segment>() });
    if (endMs > back.endMs) Object.assign(back, { count: back.count + 1, endMs });
    for (const segment of list.segments) back.segments.set(segment.dateMs!, segment);
    const [first, end] = [segments[0]!, segments.at(-1)!];
    const lastsMs = end.dateMs! + 1000 * end.durationS - first.dateMs!;
    // An old list that grows is not so old that it shares nothing with what was recorded, or ends before a list as long.
    const isFar = !segments.some(this.#isKnown) || end.dateMs! < last.dateMs! - lastsMs;
    const count = (last.moved?.restart?.count ?? 0) + 1;
    const isLasting = back.count >= (list.hasEnded ? 2 : maxBack) && isFar;
    if (!isLasting && !this.#restarts.has(count)) return [];
    const found = [...back.segments.values()].toSorted((a, b) => a.dateMs! - b.dateMs!);
    const addedMs = this.#restarts.addedMs(count, found[0]!);
    this.#back = null;
    return newByDate(moveDates(found, addedMs), leaveFree(last), { count, addedMs });
  }
}

function moveDates(segments: readonly Segment[], addedMs: number): readonly Segment[] {
  if (addedMs === 0) return segments;
  return segments.map((segment) => {
    const { dateMs = 0, originMs = 0 } = segment;
    return { ...segment, dateMs: dateMs + addedMs, originMs: originMs + addedMs };
  });
}

const leaveFree = (last: RecordedSegment): RecordedSegment => ({ ...last, sequence: last.sequence + 1 });

/** Returns the segments that start after `last`, whose numbers leave out as many as the time in between has room for. */
function newByDate(segments: readonly Segment[], last: RecordedSegment, restart?: Restart): RecordedSegment[] {
  const found: RecordedSegment[] = [];
  let before = last;
  for (const segment of segments) {
    // A Period ends with one optional segment at most, which an earlier run may have listed: it has no duration.
    const isSameEnd = segment.isOptional === true && before.isOptional === true;
    if (isSameEnd || !isLater(segment, before)) continue;
    const gapS = (segment.dateMs! - before.dateMs!) / 1000 - before.durationS;
    const isGap = gapS > segment.durationS / 2;
    const missing = isGap ? Math.max(1, Math.round(gapS / (segment.durationS || gapS))) : 0;
    before = { ...onClock(segment, before, restart), sequence: before.sequence + 1 + missing };
    found.push(before);
  }
  return found;
}

/** Moves a segment to where its date is in the recording if its presentation has restarted at 0 since `before`. */
function onClock(segment: Segment, before: RecordedSegment, restart: Restart | undefined): RecordedSegment {
  const startOf = ({ dateMs = 0, originMs = 0 }: Segment) => dateMs - originMs;
  // The journal of an earlier version has no origins.
  const isAnew = before.originMs !== undefined && startOf(segment) < startOf(before);
  const addedMs = isAnew ? (segment.originMs ?? 0) - (before.originMs ?? 0) : 0;
  const timeline = (before.moved?.timeline ?? 0) + addedMs;
  if (timeline === 0 && restart === undefined) return segment;
  const addedS = timeline / 1000;
  const { offsetS, span, computed } = segment;
  return {
    ...segment,
    moved: { sequence: 0, timeline, ...(restart && { restart }) },
    timeline: segment.timeline + timeline,
    offsetS: offsetS === null ? null : offsetS + addedS,
    ...(span && { span: { startS: span.startS + addedS, endS: span.endS + addedS } }),
    ...(computed && { computed: { ...computed, periodEndS: computed.periodEndS + addedS } }),
  };
}

/** Whether dates show that a segment starts after another one. */
export function isLater({ dateMs }: Segment, { dateMs: beforeMs, durationS }: Segment): boolean {
  return dateMs !== undefined && beforeMs !== undefined && dateMs >= beforeMs + 500 * durationS;
}

/** Whether dates show that two segments start at once. */
export function isSameDate({ dateMs }: Segment, { dateMs: otherMs, durationS }: Segment): boolean {
  return dateMs !== undefined && otherMs !== undefined && Math.abs(dateMs - otherMs) < 500 * durationS;
}

/** Whether dates show that a segment starts where another one ends. */
export function isNext({ dateMs }: Segment, { dateMs: beforeMs, durationS }: Segment): boolean {
  if (dateMs === undefined || beforeMs === undefined) return false;
  return Math.abs(dateMs - beforeMs - 1000 * durationS) < 500 * durationS;
}

/** How far back segments are recognised. */
const maxKnown = 20_000;

/** The latest segments of a recording. */
export class KnownSegments {
  /** By their numbers in the recording, and the numbers by id. */
  readonly #segments = new Map<number, RecordedSegment>();
  readonly #numbers = new Map<string, number>();
  /** Two segments had one URL. */
  areUrlsReused = false;
  /** A segment was listed twice under one URL; then another URL is another segment. */
  #areUrlsStable = false;

  /** `firstMoved`: the numbers before it are of an earlier numbering, which may have had the same URLs. */
  add(segment: RecordedSegment, firstMoved: number): void {
    const { sequence } = segment;
    const id = idOf(segment);
    const before = this.#numbers.get(id);
    this.areUrlsReused ||= before !== undefined && before >= firstMoved && before !== sequence;
    this.#segments.set(sequence, segment);
    this.#numbers.set(id, sequence);
    const oldest = this.#segments.get(sequence - maxKnown);
    if (oldest === undefined) return;
    this.#segments.delete(sequence - maxKnown);
    if (this.#numbers.get(idOf(oldest)) === sequence - maxKnown) this.#numbers.delete(idOf(oldest));
  }

  /** Returns the last segment that is known under the number and the URL that it has here, to which `moved` is added. */
  lastIn(segments: readonly Segment[], moved: number): RecordedSegment | undefined {
    const known = segments.findLast((segment) => this.#numbers.get(idOf(segment)) === segment.sequence + moved);
    return known && this.#segments.get(known.sequence + moved);
  }

  has(segment: Segment): boolean {
    return this.#numbers.has(idOf(segment));
  }

  /** Whether it is known, at its date if it has one. */
  isRecorded(segment: Segment): boolean {
    return segment.dateMs === undefined ? this.has(segment) : this.hasAtDate(segment);
  }

  hasAtDate(segment: Segment): boolean {
    const known = this.#segments.get(this.#numbers.get(idOf(segment)) ?? -1);
    return known !== undefined && isSameDate(segment, known);
  }

  /** Compares a list with the known segments of its numbers, to which `moved` is added. */
  compare(segments: readonly Segment[], moved: number): { hasSame: boolean; hasOther: boolean } {
    const toleranceMs = 1000 * segments.reduce((sum, { durationS }) => sum + durationS, 0);
    const found = { hasSame: false, hasOther: false };
    for (const segment of segments) {
      const before = this.#segments.get(segment.sequence + moved);
      if (before === undefined) continue;
      const isSameUrl = idOf(segment) === idOf(before);
      const apartMs = Math.abs((segment.dateMs ?? Number.NaN) - (before.dateMs ?? Number.NaN));
      if (apartMs > toleranceMs) found.hasOther = true;
      else if (isSameUrl || apartMs <= toleranceMs) found.hasSame = true;
      else if (this.#areUrlsStable && !this.areUrlsReused) found.hasOther = true;
      this.#areUrlsStable ||= isSameUrl && !(apartMs > toleranceMs);
    }
    return found;
  }
}

/** Returns what identifies a segment whatever tokens the query of its URL has. */
export function idOf({ url, range }: Segment): string {
  const path = url.replace(/[?#].*/s, "");
  return range === null ? path : `${path} ${range.offset} ${range.length}`;
}
