import type { DisplayOrder } from "../codecs/video-syntax.ts";
import { ticksPerSecond } from "./timestamps.ts";

/** Finds when pictures without a time are shown, by their order among those that have one. Times are ticks. */
export class DisplayTimes {
  #latest: { order: DisplayOrder; shown: number } | null = null;
  /** When the last picture so far is shown. */
  #end = -Infinity;
  /** How long one number of the order lasts; `null`: not known. */
  #step: number | null = null;
  /** The same as the stream says it, seconds, if `#step` is from there. */
  #statedS: number | null = null;
  /** The least distance of two pictures that are decoded one after the other, in numbers: that of two frames. */
  #distance = Infinity;
  /** Pictures that have a time are shown where the order says. */
  #isRight = true;

  /** Notes a picture that has a time. */
  note(order: DisplayOrder | null, shown: number): void {
    const last = this.#latest;
    if (last !== null && order?.start === last.order.start && order.number !== last.order.number) {
      const numbers = order.number - last.order.number;
      const stated = (shown - last.shown) / numbers;
      this.#step ??= stated;
      this.#isRight &&= Math.abs((stated - this.#step) * numbers) <= this.#step;
    }
    this.#hold(order, shown);
  }

  /** Returns when a picture without a time is shown; `null`: unknown. Where numbers start again, it is shown after all others. */
  find(order: DisplayOrder | null): number | null {
    const last = this.#latest;
    const stepS = order?.stepS ?? 0;
    const step = this.#step ?? stepS * ticksPerSecond;
    this.#isRight &&= this.#statedS === null || this.#statedS === stepS;
    if (order === null || last === null || step <= 0 || !this.#isRight) return null;
    const isSame = order.start === last.order.start;
    const shown = isSame ? last.shown + (order.number - last.order.number) * step : this.#end + this.#distance * step;
    if (!Number.isFinite(shown)) return null;
    if (this.#step === null) this.#statedS = stepS;
    this.#step = step;
    this.#hold(order, shown);
    return Math.round(shown);
  }

  #hold(order: DisplayOrder | null, shown: number): void {
    const last = this.#latest?.order;
    const isNext = order !== null && last?.start === order.start && last.number !== order.number;
    if (isNext) this.#distance = Math.min(this.#distance, Math.abs(order.number - last.number));
    this.#latest = order === null ? null : { order, shown };
    this.#end = Math.max(this.#end, shown);
  }
}
