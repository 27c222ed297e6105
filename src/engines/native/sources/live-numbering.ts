import type { Segment, SegmentList } from "../../../manifests/segments.ts";

/** A segment of a recording: numbers and timelines increase through it, whatever its playlist states. */
export interface RecordedSegment extends Segment {
  /** What was added to those that the playlist states; default nothing. */
  moved?: { sequence: number; timeline: number };
}

/**
 * Tells which segments of a live playlist are new, as each is read. Its server must count on (RFC 8216 §6.2.2),
 * but may number anew when it restarts, and a cache may return an older list.
 */
export interface LiveNumbering {
  /** Takes note of a segment that was recorded. */
  note(segment: RecordedSegment): void;
  /**
   * Returns the segments of a list that come after the last one noted, in order. One number is left free if the
   * list is numbered anew and nothing shows whether segments are missing before it.
   */
  newIn(list: SegmentList): RecordedSegment[];
}

/** How far back segments are recognised. */
const maxKnown = 20_000;
/** Lists in a row that go back until they are no old ones of a cache. */
const maxBack = 3;

export function createLiveNumbering(): LiveNumbering {
  /** By their numbers in the recording, and the numbers by id. */
  const known = new Map<number, Segment>();
  const numbers = new Map<string, number>();
  let last: RecordedSegment | null = null;
  let moved = { sequence: 0, timeline: 0 };
  /** First number that was stated with `moved`. */
  let firstMoved = 0;
  /** A segment was listed twice under one URL; then another URL is another segment. */
  let areUrlsStable = false;
  /** Two segments had one URL. */
  let areUrlsReused = false;
  /** Lists in a row that go back: the first one, and the segments of all by the number that they state. */
  let back: { first: SegmentList; count: number; segments: Map<number, Segment> } | null = null;

  const numberOf = ({ sequence }: Segment): number => sequence + moved.sequence;

  /** Compares a list with the known segments of its numbers. */
  function compare(segments: readonly Segment[]): { hasSame: boolean; hasOther: boolean } {
    const toleranceMs = 1000 * segments.reduce((sum, { durationS }) => sum + durationS, 0);
    const found = { hasSame: false, hasOther: false };
    for (const segment of segments) {
      const before = known.get(numberOf(segment));
      if (before === undefined) continue;
      const isSameUrl = idOf(segment) === idOf(before);
      const apartMs = Math.abs((segment.dateMs ?? Number.NaN) - (before.dateMs ?? Number.NaN));
      if (apartMs > toleranceMs) found.hasOther = true;
      else if (isSameUrl || apartMs <= toleranceMs) found.hasSame = true;
      else if (areUrlsStable && !areUrlsReused) found.hasOther = true;
      areUrlsStable ||= isSameUrl && !(apartMs > toleranceMs);
    }
    return found;
  }

  /** Continues with `segments`, of which the first one is to get the number `sequence`. */
  function move(segments: readonly Segment[], sequence: number, timeline: number): void {
    const [first] = segments;
    if (first === undefined) return;
    moved = { sequence: sequence - first.sequence, timeline: timeline - first.timeline };
    firstMoved = sequence;
  }

  /** Returns the segments after the last one known, if their URLs or dates show them. */
  function findNext(segments: readonly Segment[], after: RecordedSegment): Segment[] | null {
    const at = segments.findLastIndex((segment) => idOf(segment) === idOf(after));
    const isSame = at >= 0 && !areUrlsReused && !isLater(segments[at]!, after);
    if (isSame) {
      move(segments.slice(at), after.sequence, after.timeline);
      return segments.slice(at + 1);
    }
    if (after.dateMs === undefined || segments.some(({ dateMs }) => dateMs === undefined))
      return null;
    const next = segments.filter((segment) => isLater(segment, after));
    const free = next.slice(0, 1).every((segment) => isNext(segment, after)) ? 0 : 1;
    move(next, after.sequence + 1 + free, after.timeline + 1);
    return next;
  }

  /** Returns the segments of several lists that go back, once they are no old ones. */
  function findRestart(list: SegmentList, after: RecordedSegment): Segment[] {
    back ??= { first: list, count: 0, segments: new Map() };
    back.count += 1;
    for (const segment of list.segments) back.segments.set(segment.sequence, segment);
    const { hasSame, hasOther } = compare(list.segments);
    const end = list.segments.at(-1)!;
    const hasGrown = end.sequence > (back.first.segments.at(-1)?.sequence ?? 0);
    // An old list of the same numbers is not so old that it shares nothing with the latest one.
    const isFar = !hasSame || numberOf(end) < after.sequence - list.segments.length;
    const isLasting = back.count >= maxBack && (hasGrown ? isFar : hasOther && !hasSame);
    if (list.hasEnded ? hasSame : !isLasting) return [];
    const isUnknown = (segment: Segment) => hasSame || !numbers.has(idOf(segment));
    const segments = [...back.segments.values()]
      .filter(isUnknown)
      .toSorted((a, b) => a.sequence - b.sequence);
    move(segments, after.sequence + 2, after.timeline + 1);
    return segments;
  }

  function findNew(list: SegmentList, after: RecordedSegment): Segment[] {
    const { segments } = list;
    const [first, end] = [segments[0]!, segments.at(-1)!];
    const { hasSame, hasOther } = compare(segments);
    const isAhead = numberOf(first) > after.sequence + 1;
    const isKnown = (segment: Segment) =>
      (numbers.has(idOf(segment)) && !areUrlsReused) || isNext(segment, after);
    const isMoved = isAhead && segments.some(isKnown);
    const isBack = numberOf(end) < after.sequence || (hasOther && !hasSame);
    if (!isBack && !isMoved) {
      back = null;
      return segments.filter((segment) => numberOf(segment) > after.sequence);
    }
    const next = findNext(segments, after) ?? findRestart(list, after);
    if (next.length > 0) back = null;
    return next;
  }

  return {
    note(segment) {
      const { sequence } = segment;
      const id = idOf(segment);
      const before = numbers.get(id);
      areUrlsReused ||= before !== undefined && before >= firstMoved && before !== sequence;
      known.set(sequence, segment);
      numbers.set(id, sequence);
      last = segment;
      if (segment.moved !== undefined && segment.moved.sequence !== moved.sequence) {
        ({ moved } = segment);
        firstMoved = sequence;
      }
      const oldest = known.get(sequence - maxKnown);
      if (oldest === undefined) return;
      known.delete(sequence - maxKnown);
      if (numbers.get(idOf(oldest)) === sequence - maxKnown) numbers.delete(idOf(oldest));
    },
    newIn(list) {
      if (list.segments.length === 0) return [];
      const found = last === null ? list.segments : findNew(list, last);
      const isMoved = moved.sequence !== 0 || moved.timeline !== 0;
      return found.map((segment) => ({
        ...segment,
        sequence: numberOf(segment),
        timeline: segment.timeline + moved.timeline,
        ...(isMoved && { moved }),
      }));
    },
  };
}

/** Returns what identifies a segment whatever tokens the query of its URL has. */
function idOf({ url, range }: Segment): string {
  const path = url.replace(/[?#].*/s, "");
  return range === null ? path : `${path} ${range.offset} ${range.length}`;
}

/** Whether dates show that a segment starts after another one. */
function isLater({ dateMs }: Segment, { dateMs: beforeMs, durationS }: Segment): boolean {
  return dateMs !== undefined && beforeMs !== undefined && dateMs >= beforeMs + 500 * durationS;
}

/** Whether dates show that a segment starts where another one ends. */
function isNext({ dateMs }: Segment, { dateMs: beforeMs, durationS }: Segment): boolean {
  if (dateMs === undefined || beforeMs === undefined) return false;
  return Math.abs(dateMs - beforeMs - 1000 * durationS) < 500 * durationS;
}
