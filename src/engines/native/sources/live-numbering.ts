import type { Segment, SegmentList } from "../../../manifests/segments.ts";
import {
  idOf,
  isLater,
  isNext,
  isSameDate,
  KnownSegments,
  LiveDates,
  maxBack,
  type RecordedSegment,
  type Restarts,
} from "./live-dates.ts";

/**
 * Finds the segments of a live playlist that are new, each time it is read. Its server must count on (RFC 8216
 * §6.2.2), but may restart its numbers when it restarts itself, and a cache may return an older list.
 */
export class LiveNumbering {
  readonly #known = new KnownSegments();
  readonly #restarts: Restarts;
  readonly #dates: LiveDates;
  #last: RecordedSegment | null = null;
  #moved = { sequence: 0, timeline: 0 };
  /** First number of the recording that was listed with `#moved`. */
  #firstMoved = 0;
  /** What identifies the last segment of the latest list, if its URL may be cut off. */
  #doubtful: string | null = null;
  #back: BackLists | null = null;

  constructor(restarts: Restarts) {
    this.#restarts = restarts;
    this.#dates = new LiveDates(restarts, (segment) => this.#known.hasAtDate(segment));
  }

  add(segment: RecordedSegment): void {
    this.#known.add(segment, this.#firstMoved);
    this.#restarts.add(segment);
    this.#last = segment;
    const { moved = { sequence: 0, timeline: 0 } } = segment;
    if (moved.sequence !== this.#moved.sequence) this.#firstMoved = segment.sequence;
    this.#moved = moved;
  }

  /**
   * Whether the latest lists may have other media under the URLs of recorded segments: they go back, but are neither old lists of a
   * cache nor those of a late server, which are as long as others. `isEnd`: there will be no further list.
   */
  isDoubtful(isEnd: boolean): boolean {
    const least = isEnd ? maxBack - 1 : maxBack;
    const isBack = this.#back !== null && !this.#back.isOld && this.#back.lengthened >= least - 1;
    return isBack || this.#dates.countBack >= least;
  }

  /**
   * Returns the last recorded segment in a list without dates, if lists have gone back and this one continues or has ended. Only its media
   * then show whether the lists were old ones, or the server has restarted and has other media under its URLs.
   */
  doubtIn({ segments, hasEnded }: SegmentList): RecordedSegment | undefined {
    const last = this.#last;
    if (this.#back === null || last === null || last.dateMs !== undefined) return undefined;
    const goesOn = segments.some((segment) => this.#numberOf(segment) > last.sequence);
    return goesOn || hasEnded ? this.#known.lastIn(segments, this.#moved.sequence) : undefined;
  }

  /**
   * Returns the segments of a list that come after the last one added, in order. One number is left free if the
   * numbers of the list restart and nothing shows whether segments are missing before it.
   */
  newIn(whole: SegmentList): RecordedSegment[] {
    const list = this.#withoutDoubtful(whole);
    if (list.segments.length === 0) return [];
    if (list.isDated === true && this.#last?.dateMs !== undefined) return this.#dates.newIn(list, this.#last);
    const found = this.#last === null ? list.segments : this.#findNew(list, this.#last);
    const moved = this.#moved;
    const isMoved = moved.sequence !== 0 || moved.timeline !== 0;
    return found.map((segment) => ({
      ...segment,
      sequence: this.#numberOf(segment),
      timeline: segment.timeline + moved.timeline,
      ...(isMoved && { moved }),
    }));
  }

  /** A URL that may be cut off counts once it is read twice: its server was writing the list, or does not end its last line. */
  #withoutDoubtful(list: SegmentList): SegmentList {
    const end = list.isLastDoubtful === true ? list.segments.at(-1) : undefined;
    const id = end === undefined ? null : idOf(end);
    const isNew = id !== null && id !== this.#doubtful;
    this.#doubtful = id;
    return isNew ? { ...list, segments: list.segments.slice(0, -1) } : list;
  }

  #numberOf({ sequence }: Segment): number {
    return sequence + this.#moved.sequence;
  }

  #findNew(list: SegmentList, after: RecordedSegment): Segment[] {
    const { segments } = list;
    const [first, end] = [segments[0]!, segments.at(-1)!];
    const { hasSame, hasOther } = this.#known.compare(segments, this.#moved.sequence);
    const isAhead = this.#numberOf(first) > after.sequence + 1;
    const isKnown = (segment: Segment) =>
      (this.#known.has(segment) && !this.#known.areUrlsReused) || isNext(segment, after);
    const listed = segments.find((segment) => this.#numberOf(segment) === after.sequence);
    const isMoved =
      (isAhead && segments.some(isKnown)) || (listed !== undefined && this.#isShifted(list, listed, after));
    const isBack = this.#numberOf(end) < after.sequence || (hasOther && !hasSame);
    if (!isBack && !isMoved) {
      const found = segments.filter((segment) => this.#numberOf(segment) > after.sequence);
      const isDoubtful = this.isDoubtful(false);
      if (isDoubtful) this.#move(found, after.sequence + 2, after.timeline + 1);
      else this.#alignTimelines(listed, found, after);
      if (found.length > 0 || !isDoubtful) this.#back = null;
      return found;
    }
    const next = this.#findNext(segments, after) ?? this.#findRestart(list, after);
    if (next.length > 0) this.#back = null;
    return next;
  }

  /** Whether a list has the last segment under another number than before, at which it has another one. */
  #isShifted({ segments }: SegmentList, listed: Segment, after: RecordedSegment): boolean {
    const isOther = idOf(listed) !== idOf(after) && !this.#known.areUrlsReused && !isSameDate(listed, after);
    return isOther && segments.some((segment) => idOf(segment) === idOf(after));
  }

  /** A playlist without EXT-X-DISCONTINUITY-SEQUENCE does not count the discontinuities that it no longer lists. */
  #alignTimelines(listed: Segment | undefined, [next]: readonly Segment[], { timeline }: RecordedSegment): void {
    const { sequence, timeline: moved } = this.#moved;
    if (listed !== undefined) this.#moved = { sequence, timeline: timeline - listed.timeline };
    else if (next !== undefined && next.timeline + moved < timeline) {
      this.#moved = { sequence, timeline: timeline + 1 - next.timeline };
    }
  }

  /** Returns the segments after the last one known, if their URLs or dates show them. */
  #findNext(segments: readonly Segment[], after: RecordedSegment): Segment[] | null {
    const at = segments.findLastIndex((segment) => idOf(segment) === idOf(after));
    const isSame = at >= 0 && !this.#known.areUrlsReused && !isLater(segments[at]!, after);
    if (isSame) {
      this.#move(segments.slice(at), after.sequence, after.timeline);
      return segments.slice(at + 1);
    }
    if (after.dateMs === undefined || segments.some(({ dateMs }) => dateMs === undefined)) return null;
    const next = segments.filter((segment) => isLater(segment, after));
    if (next.length === 0 && this.#isClockSetBack(segments, after)) return null;
    const free = next.slice(0, 1).every((segment) => isNext(segment, after)) ? 0 : 1;
    this.#move(next, after.sequence + 1 + free, after.timeline + 1);
    return next;
  }

  /** Whether the dates of a list are earlier because its server restarted with another clock: an old list has the numbers that go with its dates. */
  #isClockSetBack(segments: readonly Segment[], after: RecordedSegment): boolean {
    const end = segments.at(-1)!;
    const agoMs = after.dateMs! - end.dateMs!;
    const byNumbersMs = 1000 * end.durationS * (after.sequence - this.#numberOf(end));
    const isOther = Math.abs(agoMs - byNumbersMs) > agoMs / 4;
    const isFar = agoMs > 1000 * end.durationS * usualLagSegments;
    return isFar && isOther && !segments.some((segment) => this.#known.hasAtDate(segment));
  }

  /** Returns the segments of several lists that go back, once they are no old ones. */
  #findRestart(list: SegmentList, after: RecordedSegment): Segment[] {
    const [first, end] = [list.segments[0]!, list.segments.at(-1)!];
    const back = (this.#back ??= {
      count: 0,
      hasGrown: false,
      lengthened: 0,
      first: first.sequence,
      end: end.sequence,
      isOld: false,
      segments: new Map(),
    });
    back.count += 1;
    if (end.sequence > back.end) {
      back.hasGrown = true;
      back.lengthened += first.sequence === back.first ? 1 : 0;
      back.end = end.sequence;
    }
    const listed = list.segments.find(({ sequence }) => back.segments.has(sequence));
    const forgotten = listed === undefined ? 0 : back.segments.get(listed.sequence)!.timeline - listed.timeline;
    for (const segment of list.segments) {
      back.segments.set(segment.sequence, { ...segment, timeline: segment.timeline + forgotten });
    }
    const { hasSame, hasOther } = this.#known.compare(list.segments, this.#moved.sequence);
    // An old list of the same numbers is not so old that it shares nothing with the latest one.
    const isFar = !hasSame || this.#numberOf(end) < after.sequence - list.segments.length;
    const isLasting = back.count >= maxBack && (back.hasGrown ? isFar : hasOther && !hasSame);
    back.isOld = hasSame && end.dateMs !== undefined;
    // An old list of a cache has not ended; one whose last segments were taken out goes back at once.
    const isEndOfSame = hasSame && (back.isOld || !back.hasGrown);
    if (list.hasEnded ? isEndOfSame : !isLasting) return [];
    const segments = [...back.segments.values()]
      .filter((segment) => hasSame || !this.#known.isRecorded(segment))
      .toSorted((a, b) => a.sequence - b.sequence);
    this.#move(segments, after.sequence + 2, after.timeline + 1);
    return segments;
  }

  /** Continues with `segments`, of which the first one is to get the number `sequence`. */
  #move([first]: readonly Segment[], sequence: number, timeline: number): void {
    if (first === undefined) return;
    this.#moved = { sequence: sequence - first.sequence, timeline: timeline - first.timeline };
    this.#firstMoved = sequence;
  }
}

/** Lists in a row that go back. */
interface BackLists {
  count: number;
  hasGrown: boolean;
  /** How many have grown, and begin with the same segment as the first of them. */
  lengthened: number;
  /** Number of the first segment of the first list. */
  first: number;
  /** Latest number. */
  end: number;
  /** The latest list is old by its dates. */
  isOld: boolean;
  /** Of all lists, by their listed numbers. */
  segments: Map<number, Segment>;
}

/** How many segments another server of a CDN may be late. */
const usualLagSegments = 10;
