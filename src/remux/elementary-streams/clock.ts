import type { SegmentTiming } from "../samples.ts";
import type { Timelines } from "../timelines.ts";
import type { PesTime } from "./stream.ts";

/** MPEG-2 timestamps count ticks of 1/90000 s. */
export const ticksPerSecond = 90_000;

/**
 * Converts the 33-bit timestamps of the streams of one source to ticks on the presentation timeline. They
 * continue across the wrap after 26.5 h. If those of a stream fall back by more than 1 s (0.5 s if DTS are
 * stated), or leap by more than 20 s, a new time base begins where the latest samples of its streams ended. Each
 * stream changes to it when its own timestamps do.
 */
export interface Clock {
  /** Starts another timeline. */
  reset(timing: SegmentTiming): void;
  /** Adds a stream. */
  open(): StreamClock;
}

/** The times of one stream. */
export interface StreamClock {
  /**
   * Returns whether a packet with this time begins another time base. What was read before it must be
   * converted first.
   */
  isLeap(time: PesTime): boolean;
  /** Notes the time of the next packet, before it is converted. */
  note(time: PesTime): void;
  /**
   * Starts the stream's time base if the first times of all streams on it are known; returns whether it
   * has started.
   */
  tryStart(): boolean;
  /** Starts the stream's time base with what is known; `time` may be called then. */
  start(): void;
  /** Returns the presentation time of a timestamp near those that were noted. */
  time(stamp: number): number;
  /** Notes that a sample ends at this presentation time, in ticks. */
  reach(end: number): void;
  /** Removes the stream. */
  close(): void;
}

/** Timestamps without a leap between them: presentation time = timestamp, unwrapped, + `shift`. */
interface TimeBase {
  /** The first one of its timeline. */
  isInitial: boolean;
  /** `null`: not started. */
  shift: number | null;
  /** The first and the latest timestamp of all its streams, unwrapped. */
  first: number;
  latest: number;
  /** First presentation timestamps, unwrapped. */
  firsts: Map<StreamState, number>;
}

interface StreamState {
  base: TimeBase | null;
  /** Its latest timestamp, unwrapped. */
  latest: number;
  /** Presentation time at which its latest sample ends. */
  end: number;
}

const range = 2 ** 33;
/** Decoding times that are not stated may fall back with the presentation times of pictures. */
const maxFallBack = ticksPerSecond;
const maxLeap = 20 * ticksPerSecond;
/** A larger step, or one back, leads to another time base that the time belongs to. */
const maxStep = ticksPerSecond / 2;
/** How much earlier the first time of a stream may be than that of another. */
const maxLead = 10 * ticksPerSecond;
const maxBases = 3;

export function createClock(timelines: Timelines): Clock {
  let timing: SegmentTiming = { timeline: 0, offsetS: null };
  /** The newest first. */
  let bases: TimeBase[] = [];
  /** Presentation time at which the latest sample of all streams ends. */
  let reached = 0;
  const streams = new Set<StreamState>();

  const addBase = (stamp: number): TimeBase => {
    const isInitial = bases.length === 0;
    const times = { first: stamp, latest: stamp, firsts: new Map<StreamState, number>() };
    const base: TimeBase = { isInitial, shift: null, ...times };
    bases = [base, ...bases.slice(0, maxBases - 1)];
    return base;
  };
  const startInitial = (base: TimeBase): number => {
    const first = base.firsts.size > 0 ? Math.min(...base.firsts.values()) : base.first;
    const lift = first < 0 ? range : 0;
    const firstS = (first + lift) / ticksPerSecond;
    const offsetS = timelines.offset(timing.timeline, timing.offsetS, firstS);
    const shift = lift + Math.round(offsetS * ticksPerSecond);
    reached = first + shift;
    return shift;
  };
  /** Returns the least shift by which no stream overlaps what it had before, in sync with other sources. */
  const startAfterLeap = ({ firsts, first }: TimeBase): number => {
    const ends = [...firsts].map(([{ end }, stamp]) => (end > -Infinity ? end : reached) - stamp);
    const at = first + (ends.length > 0 ? Math.max(...ends) : reached - first);
    const [firstS, atS] = [first / ticksPerSecond, at / ticksPerSecond];
    const placedS = timelines.leap({ source: streams, timeline: timing.timeline, firstS, atS });
    return Math.round(placedS * ticksPerSecond) - first;
  };
  const start = (base: TimeBase): void => {
    base.shift ??= base.isInitial ? startInitial(base) : startAfterLeap(base);
  };
  const openStream = (): StreamState => {
    const stream = { base: null, latest: 0, end: bases.length > 0 ? reached : -Infinity };
    streams.add(stream);
    return stream;
  };

  return {
    reset(next) {
      timing = next;
      bases = [];
      for (const stream of streams)
        Object.assign(stream, { base: null, latest: 0, end: -Infinity });
    },
    open() {
      const stream = openStream();
      /** Returns another time base that `stamp` belongs to. */
      const findOther = (stamp: number): TimeBase | undefined => {
        const own = stream.base === null ? -1 : bases.indexOf(stream.base);
        return bases.find((base, i) => {
          if (i === own) return false;
          const at = unwrap(stamp, base.latest);
          const isNear = at >= base.first - maxLead && at <= base.latest + maxLeap;
          if (!isNear || base.shift === null) return isNear;
          const gap = at + base.shift - stream.end;
          // Back to an older one: only after a damaged time.
          return gap >= -maxFallBack && (own < 0 || i < own || Math.abs(gap) <= maxStep);
        });
      };
      const isLeap = ({ dts, pts }: PesTime): boolean => {
        const { base, latest } = stream;
        if (base === null) return false;
        const at = unwrap(dts, latest);
        const step = at - latest;
        if ((step < 0 || step > maxStep) && findOther(dts) !== undefined) return true;
        return step < (pts === dts ? -maxFallBack : -maxStep) || at > base.latest + maxLeap;
      };
      return {
        isLeap,
        note(time) {
          const { dts, pts } = time;
          let { base } = stream;
          if (base === null || isLeap(time)) {
            base = findOther(dts) ?? addBase(dts);
            stream.base = base;
            stream.latest = base.latest;
          }
          stream.latest = unwrap(dts, stream.latest);
          if (!base.firsts.has(stream)) base.firsts.set(stream, unwrap(pts, stream.latest));
          base.first = Math.min(base.first, stream.latest);
          base.latest = Math.max(base.latest, stream.latest);
        },
        tryStart() {
          const { base } = stream;
          if (base === null) return false;
          if (base.shift === null && [...streams].every((each) => base.firsts.has(each)))
            start(base);
          return base.shift !== null;
        },
        start() {
          stream.base ??= bases[0] ?? addBase(0);
          start(stream.base);
        },
        time: (stamp) => unwrap(stamp, stream.latest) + (stream.base?.shift ?? 0),
        reach(end) {
          const { base } = stream;
          stream.end = Math.max(stream.end, Math.round(end));
          reached = Math.max(reached, stream.end);
          if (base !== null) base.latest = Math.max(base.latest, end - (base.shift ?? 0));
          timelines.reach(end / ticksPerSecond);
        },
        close() {
          streams.delete(stream);
        },
      };
    },
  };
}

/** Returns the number nearest to `near` that is `stamp` modulo 2^33. */
export function unwrap(stamp: number, near: number): number {
  return stamp + Math.round((near - stamp) / range) * range;
}
