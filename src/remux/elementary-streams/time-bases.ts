import { discontinuityLimits, maxSkipDriftS, SkipError, type Timelines } from "../timelines.ts";
import type { SegmentTiming } from "../samples.ts";
import { ticksPerSecond, timestampRange, unwrap } from "./timestamps.ts";

/** Timestamps without a discontinuity between them: presentation time = timestamp, unwrapped, + `shift`. */
interface TimeBase {
  /** The first one of its timeline. */
  isInitial: boolean;
  /** `null`: not started. */
  shift: number | null;
  /** The first and the latest timestamp of all its streams, unwrapped. */
  first: number;
  latest: number;
  /** First presentation timestamps, unwrapped. */
  firsts: Map<StreamTimes, number>;
}

/** How far a stream has been read. */
export interface StreamTimes {
  /** The track that it is. */
  slot: string;
  base: TimeBase | null;
  /** Its latest timestamp, unwrapped. */
  latest: number;
  /** Presentation time at which its latest sample ends; −Infinity: none yet. */
  end: number;
  /** Media before its next timestamp were left out. */
  isSkipping: boolean;
}

/** Without DTS the times fall back with the presentation times of frames. */
export const limits = discontinuityLimits(ticksPerSecond);
/** A larger step, or one back, leads to another time base that the time belongs to. */
export const maxStep = ticksPerSecond / 2;
/** How much earlier the first time of a stream may be than that of another. */
const maxLead = 10 * ticksPerSecond;
const maxBases = 3;

/** The latest time bases of the streams of one source. */
export class TimeBases {
  readonly #timelines: Timelines;
  readonly #streams = new Set<StreamTimes>();
  #timing: SegmentTiming = { timeline: 0, offsetS: null };
  /** The newest first. */
  #bases: TimeBase[] = [];
  /** Presentation time at which the latest sample of all streams ends. */
  #reached = 0;
  /** The same for each track, whatever timeline it is of. */
  readonly #ends = new Map<string, number>();

  constructor(timelines: Timelines) {
    this.#timelines = timelines;
  }

  /** Starts another timeline. */
  reset(timing: SegmentTiming): void {
    this.#timing = timing;
    this.#bases = [];
    for (const stream of this.#streams)
      Object.assign(stream, { base: null, latest: 0, end: -Infinity, isSkipping: false });
  }

  /**
   * Leaves out media of about `seconds`: the next timestamps belong to the same time base.
   * @throws SkipError if there were several: there may be more in what is left out.
   */
  skip(seconds: number): void {
    const [base, other] = this.#bases;
    if (other !== undefined) throw new SkipError("the timestamps before what is left out are not continuous");
    const ticks = Math.round((seconds - maxSkipDriftS) * ticksPerSecond);
    if (base !== undefined) base.latest += ticks;
    for (const stream of this.#streams) {
      stream.latest += ticks;
      stream.isSkipping = true;
    }
  }

  addStream(slot: string): StreamTimes {
    const end = this.#bases.length > 0 ? this.#reached : -Infinity;
    const stream = { slot, base: null, latest: 0, end, isSkipping: false };
    this.#streams.add(stream);
    return stream;
  }

  removeStream(stream: StreamTimes): void {
    this.#streams.delete(stream);
  }

  /** Returns the newest time base; creates one with the timestamp 0 if there is none. */
  newest(): TimeBase {
    return this.#bases[0] ?? this.add(0);
  }

  /** Returns the timestamp at which a stream without timestamps begins: with other sources of its timeline. */
  startStamp(): number {
    return Math.round(this.#timelines.startOf(this.#timing.timeline) * ticksPerSecond);
  }

  /** Adds a time base that begins with `stamp`. */
  add(stamp: number): TimeBase {
    const isInitial = this.#bases.length === 0;
    const times = { first: stamp, latest: stamp, firsts: new Map<StreamTimes, number>() };
    const base: TimeBase = { isInitial, shift: null, ...times };
    this.#bases = [base, ...this.#bases.slice(0, maxBases - 1)];
    return base;
  }

  /** Returns a time base, other than that of `stream`, that its timestamp `stamp` belongs to. */
  findOther(stream: StreamTimes, stamp: number): TimeBase | undefined {
    const own = stream.base === null ? -1 : this.#bases.indexOf(stream.base);
    return this.#bases.find((base, i) => {
      if (i === own) return false;
      const at = unwrap(stamp, base.latest);
      const isNear = at >= base.first - maxLead && at <= base.latest + limits.maxAhead;
      if (!isNear || base.shift === null) return isNear;
      const gap = at + base.shift - stream.end;
      // Back to an older one: only after a damaged time.
      return gap >= -limits.maxBack && (own < 0 || i < own || Math.abs(gap) <= maxStep);
    });
  }

  /** Returns the presentation time of a timestamp of a stream that has not been added; undefined if it is near none of theirs. */
  presentationOf(stamp: number): number | undefined {
    const base = this.#bases.find(({ first, latest, shift }) => {
      const at = unwrap(stamp, latest);
      return shift !== null && at >= first - maxLead && at <= latest + limits.maxAhead;
    });
    return base && unwrap(stamp, base.latest) + (base.shift ?? 0);
  }

  /** Returns whether all streams have times on `base`. */
  isComplete({ firsts }: TimeBase): boolean {
    return [...this.#streams].every((stream) => firsts.has(stream));
  }

  /** Decides the shift of `base`, unless that has been done. */
  start(base: TimeBase): void {
    base.shift ??= base.isInitial ? this.#initialShift(base) : this.#laterShift(base);
  }

  /** Notes that a sample of the stream ends at `end`, presentation time. */
  reach(end: number, stream: StreamTimes): void {
    stream.end = Math.max(stream.end, Math.round(end));
    this.#reached = Math.max(this.#reached, stream.end);
    this.#ends.set(stream.slot, stream.end);
    this.#timelines.reach(end / ticksPerSecond);
  }

  #initialShift(base: TimeBase): number {
    const { firsts, first: earliest } = base;
    const first = firsts.size > 0 ? Math.min(...firsts.values()) : earliest;
    const { timeline, offsetS } = this.#timing;
    const lifted = first < 0 ? first + timestampRange : first;
    const startS = this.#timelines.begin(timeline, lifted / ticksPerSecond);
    // The clock may wrap between where another source begins and this one.
    const start = offsetS === null ? unwrap(first, startS * ticksPerSecond) : lifted;
    const firstS = start / ticksPerSecond;
    const tracks = [...firsts].map(([{ slot }, stamp]) => ({
      endS: (this.#ends.get(slot) ?? -Infinity) / ticksPerSecond,
      firstS: (stamp + start - first) / ticksPerSecond,
    }));
    const addedS = this.#timelines.offset(timeline, offsetS, firstS, this.isComplete(base) ? tracks : []);
    const shift = start - first + Math.round(addedS * ticksPerSecond);
    this.#reached = first + shift;
    return shift;
  }

  /** Returns the least shift by which no stream overlaps what it had before, in sync with other sources. */
  #laterShift({ firsts, first }: TimeBase): number {
    const reached = this.#reached;
    const ends = [...firsts].map(([{ end }, stamp]) => (end > -Infinity ? end : reached) - stamp);
    const at = first + (ends.length > 0 ? Math.max(...ends) : reached - first);
    const [firstS, atS] = [first / ticksPerSecond, at / ticksPerSecond];
    const { timeline } = this.#timing;
    const startS = this.#timelines.continueAt({ source: this, timeline, firstS, atS });
    return Math.round(startS * ticksPerSecond) - first;
  }
}
