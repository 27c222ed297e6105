/**
 * Counts at which starts of segments the counter of a PID continues. Packets are missing where it does not, if it does at as many others or
 * more: else its packager restarts it in each segment.
 */
export class SegmentStarts {
  /** Called for each start before which packets are missing. */
  readonly #onBreak: () => void;
  /** Since breaks were last reported. */
  #continued = 0;
  #broken = 0;
  /** Number of the latest segment in which it continued. */
  #continuedIn = -1;
  /** It did not continue at the payload unit that is being read; this does not count if other times begin there. */
  #isBreakNew = false;
  /** It began again, as it began at first, with the payload unit that is being read. */
  #isCountNew = false;

  constructor(onBreak: () => void) {
    this.#onBreak = onBreak;
  }

  hasContinuedIn(segment: number): boolean {
    return this.#continuedIn === segment;
  }

  /** Notes that the first payload unit of a segment begins; `isCountNew`: its counter is that of the very first one, and may have begun again. */
  note(segment: number, isFollowing: boolean, isCountNew: boolean): void {
    if (isFollowing) {
      this.#continued += 1;
      this.#continuedIn = segment;
      return;
    }
    this.#isCountNew = isCountNew;
    this.#isBreakNew = !isCountNew;
  }

  /** Other times have begun in the payload unit that is being read: its counter may begin too. */
  startTimes(): void {
    this.#isBreakNew = false;
  }

  /** The payload unit that is being read comes late: if its counter restarted, that is a coincidence. */
  noteGap(): void {
    if (this.#isCountNew) this.#isBreakNew = true;
  }

  /** Ends the payload unit that is being read; reports what is known to be missing. */
  endUnit(): void {
    if (this.#isBreakNew) this.#broken += 1;
    this.#isBreakNew = false;
    this.#isCountNew = false;
    if (this.#continued === 0 || this.#continued < this.#broken) return;
    for (; this.#broken > 0; this.#broken -= 1) this.#onBreak();
  }
}
