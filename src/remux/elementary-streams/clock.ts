import { discontinuityLimits, isDiscontinuity, SkipError } from "../timelines.ts";
import { limits, maxStep, type StreamTimes, type TimeBases } from "./time-bases.ts";
import { type PesTime, ticksPerSecond, unwrap } from "./timestamps.ts";

/** Decode times do not fall back with the presentation times of frames. */
const limitsWithDts = discontinuityLimits(ticksPerSecond, 0.5);

/**
 * Converts the 33-bit timestamps of one stream to ticks on the presentation timeline. They continue across the wrap after
 * 26.5 h. After a discontinuity of those of a stream, a new time base begins where the latest samples of the source's
 * streams ended. Each stream changes to it when its own timestamps do.
 */
export class StreamClock {
  readonly #bases: TimeBases;
  readonly #stream: StreamTimes;

  /** Adds a stream to the source that has these time bases; `slot`: the track that it is. */
  constructor(bases: TimeBases, slot: string) {
    this.#bases = bases;
    this.#stream = bases.addStream(slot);
  }

  /**
   * Returns whether a packet with this time begins another time base. What was read before it must be converted first.
   */
  beginsTimeBase({ dts, pts }: PesTime): boolean {
    const { base, latest, isSkipping } = this.#stream;
    if (base === null) return false;
    const at = unwrap(dts, latest);
    if (isSkipping) return isDiscontinuity(at, latest, latest, limits);
    const step = at - latest;
    const isFar = step < 0 || step > maxStep;
    if (isFar && this.#bases.findOther(this.#stream, dts) !== undefined) return true;
    return isDiscontinuity(at, latest, base.latest, pts === dts ? limits : limitsWithDts);
  }

  /**
   * Notes the time of the next packet, before it is converted.
   * @throws SkipError if the time after media that were left out is far from where they end.
   */
  note(time: PesTime): void {
    const { dts, pts } = time;
    const stream = this.#stream;
    let { base } = stream;
    if (stream.isSkipping && this.beginsTimeBase(time)) {
      throw new SkipError(`the timestamp ${dts} is far from where the media end that are left out`);
    }
    stream.isSkipping = false;
    if (base === null || this.beginsTimeBase(time)) {
      base = this.#bases.findOther(stream, dts) ?? this.#bases.add(dts);
      stream.base = base;
      stream.latest = base.latest;
    }
    stream.latest = unwrap(dts, stream.latest);
    if (!base.firsts.has(stream)) base.firsts.set(stream, unwrap(pts, stream.latest));
    base.first = Math.min(base.first, stream.latest);
    base.latest = Math.max(base.latest, stream.latest);
  }

  /**
   * Starts the stream's time base if the first times of all streams on it are known; returns whether it has started.
   */
  tryStart(): boolean {
    const { base } = this.#stream;
    if (base === null) return false;
    if (base.shift === null && this.#bases.isComplete(base)) this.#bases.start(base);
    return base.shift !== null;
  }

  /** Starts the stream's time base with what is known; `time` may be called then. */
  start(): void {
    this.#stream.base ??= this.#bases.newest();
    this.#bases.start(this.#stream.base);
  }

  /** The timestamp at which the samples so far end. */
  get endStamp(): number {
    return this.#stream.base?.latest ?? 0;
  }

  /** Returns the presentation time of a timestamp near those that were noted. */
  time(stamp: number): number {
    return unwrap(stamp, this.#stream.latest) + (this.#stream.base?.shift ?? 0);
  }

  /** Notes that a sample ends at this presentation time, in ticks. */
  reach(end: number): void {
    const stream = this.#stream;
    const { base } = stream;
    this.#bases.reach(end, stream);
    if (base !== null) base.latest = Math.max(base.latest, end - (base.shift ?? 0));
  }

  /** Removes the stream. */
  close(): void {
    this.#bases.removeStream(this.#stream);
  }
}
