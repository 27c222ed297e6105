import { unwrap } from "../elementary-streams/timestamps.ts";

/** So many distances are known. */
const leastSteps = 4;

/** Measures the distances of the decode times of a stream's PES packets. */
export class PesSteps {
  #latest: number | null = null;
  #count = 0;
  #longest = 0;

  /** Notes the next decode time; returns whether it comes later than any before lets expect. */
  isLate(dts: number): boolean {
    const step = this.#latest === null ? 0 : unwrap(dts, this.#latest) - this.#latest;
    const isLate = this.#count >= leastSteps && step > 1.5 * this.#longest;
    this.#latest = dts;
    this.#longest = Math.max(this.#longest, step);
    this.#count += 1;
    return isLate;
  }

  /** Other times begin. */
  reset(): void {
    this.#latest = null;
  }
}
