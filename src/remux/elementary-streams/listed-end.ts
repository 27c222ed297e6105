import { type PesTime, ticksPerSecond, unwrap } from "./timestamps.ts";

/** Of listed durations. */
const tolerance = ticksPerSecond / 10;

/**
 * Where the segments of a video stream end by their manifest. A stream itself does not say how long its last picture
 * lasts. A manifest is believed as long as each of its segments begins where it says that the one before ends.
 */
export class ListedEnd {
  /** The segment that the next packet is of, if that is its first one: its duration in ticks. */
  #next: { duration: number } | null = null;
  /** The current one; `null`: not known. */
  #segment: { first: PesTime; duration: number } | null = null;
  #isBelieved = true;
  /** When the first packet of the current segment is presented, or of other times in it; `null`: it is the next one. */
  #firstPts: number | null = null;

  /** @param durationS Default: unknown. */
  startSegment(durationS = 0): void {
    this.#next = { duration: durationS * ticksPerSecond };
    this.#firstPts = null;
  }

  /** The next packet begins other times within the segment. */
  startTimes(): void {
    this.#firstPts = null;
  }

  note(time: PesTime): void {
    this.#firstPts ??= time.pts;
    if (this.#next === null) return;
    const { duration } = this.#next;
    const before = this.#segment;
    if (before !== null) {
      const lasted = unwrap(time.dts - before.first.dts, before.duration);
      this.#isBelieved &&= Math.abs(lasted - before.duration) <= tolerance;
    }
    this.#segment = duration === 0 ? null : { first: time, duration };
    this.#next = null;
  }

  /** Whether a packet has the times of the first one of its segment: the segment has its media twice. */
  isRepeated({ pts, dts }: PesTime): boolean {
    const first = this.#next === null ? this.#segment?.first : undefined;
    return first?.pts === pts && first.dts === dts;
  }

  /** Whether the current segment, or other times in it, begin with the packet that is presented at `pts`. */
  isFirst(pts: number): boolean {
    return this.#firstPts === pts;
  }

  /** Returns how long the segment lasts after `pts`, ticks; `null`: unknown. */
  after(pts: number): number | null {
    if (this.#segment === null || !this.#isBelieved) return null;
    const { first, duration } = this.#segment;
    return duration - unwrap(pts - first.pts, 0);
  }
}
