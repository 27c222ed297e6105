import type { MediaRange, SegmentTiming } from "../../../remux/samples.ts";
import { shortestGapS } from "../sources/fetch-stats.ts";

/** A playlist is not more exact; demuxers hold a frame back. */
const toleranceS = 0.15;
/** How many segments must last as long as their playlist says before it is believed. */
const leastBelieved = 1;
/** How much longer a duration may be that is rounded to seconds. */
const roundedS = 0.5;

/** Compares how long the segments of a source last with what their list says. */
export class ListedSegments {
  #count = 0;
  #totalS = 0;
  /** Segments in a row that were as long as listed. */
  #believed = 0;
  #isBelieved = true;
  /** Whether one of the current timeline was. */
  #isTimelineBelieved = false;
  /** How much less than listed the last segments of believed timelines have had, seconds. */
  readonly #missingS: number[] = [];
  /** All durations are whole seconds: they may be rounded. */
  #isRounded = true;
  /** The current segment; `null`: its list does not say exactly how long it lasts. */
  #current: { startS: number | null; durationS: number } | null = null;

  /** Whether the list says how long its segments last. */
  get isListed(): boolean {
    return this.#count > 0;
  }

  /** The shortest time without samples that may be a lost segment, seconds. */
  get shortestGapS(): number {
    return shortestGapS(this.#count, this.#totalS);
  }

  /**
   * Notes that the current segment is the last one of its timeline, and has all its samples.
   * @param endS Where they end; `null`: that is not certain.
   */
  endTimeline(endS: number | null): void {
    if (endS !== null && this.#isTimelineBelieved) this.#missingS.push(this.#missingAt(endS));
    this.#isTimelineBelieved = false;
    this.#current = null;
  }

  /** @param span What the samples so far present; `null`: the segment does not continue them. */
  start({ durationS, offsetS, skippedS }: SegmentTiming, span: MediaRange | null): void {
    if (span !== null && skippedS === undefined) this.#compare(span);
    this.#current = null;
    if (durationS === undefined) return;
    this.#count += 1;
    this.#totalS += durationS;
    this.#isRounded &&= Number.isInteger(durationS);
    // The last segment of a Period may be shorter.
    if (offsetS === null) this.#current = { startS: span?.endS ?? null, durationS };
  }

  /** Returns how much less the current segment has than listed, if it ends at `endS`; 0: nothing, or it is not known. */
  missingEndS(endS: number): number {
    const missingS = this.#missingAt(endS);
    return this.#believed >= leastBelieved && this.#isShort(missingS) ? missingS : 0;
  }

  /** Returns how much less than listed the last segments of timelines before the current one have: those that have less. */
  missingBeforeS(): readonly number[] {
    return this.#missingS.filter((missingS) => this.#isShort(missingS));
  }

  #missingAt(endS: number): number {
    const { startS = null, durationS = 0 } = this.#current ?? {};
    return startS === null ? 0 : startS + durationS - endS;
  }

  /** Whether so much is missing, or the list is not so exact. */
  #isShort(missingS: number): boolean {
    return this.#isBelieved && missingS > toleranceS + (this.#isRounded ? roundedS : 0);
  }

  #compare(span: MediaRange): void {
    if (this.#current === null) return;
    const { durationS } = this.#current;
    const isFirst = this.#current.startS === null && this.#count === 1;
    const startS = isFirst ? span.startS : this.#current.startS;
    if (startS === null) return;
    const { endS } = span;
    const isRight = Math.abs(endS - startS - durationS) <= toleranceS;
    this.#believed += isRight ? 1 : 0;
    this.#isBelieved &&= isRight;
    this.#isTimelineBelieved ||= isRight;
  }
}
