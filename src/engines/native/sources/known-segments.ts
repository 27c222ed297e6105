import type { Segment } from "../../../manifests/segments.ts";
import { isSameDate, type RecordedSegment } from "./live-dates.ts";

/** How far back segments are recognised. */
const maxKnown = 20_000;

/** The latest segments of a recording. */
export class KnownSegments {
  /** By their numbers in the recording, and the numbers by id. */
  readonly #segments = new Map<number, Segment>();
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

  has(segment: Segment): boolean {
    return this.#numbers.has(idOf(segment));
  }

  /** Whether it is known, at its date if it has one. */
  isRecorded(segment: Segment): boolean {
    return segment.dateMs === undefined ? this.has(segment) : this.hasAtDate(segment);
  }

  /** Whether it is known at its date. */
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
