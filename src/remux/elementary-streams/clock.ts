import { discontinuityLimits, isDiscontinuity } from "../discontinuity.ts";
import type { SegmentTiming } from "../samples.ts";
import type { Timelines } from "../timelines.ts";
import { limits, maxStep, TimeBases } from "./time-bases.ts";
import { type PesTime, ticksPerSecond, unwrap } from "./timestamps.ts";

/**
 * Converts the 33-bit timestamps of the streams of one source to ticks on the presentation timeline. They
 * continue across the wrap after 26.5 h. After a discontinuity of those of a stream, a new time base begins where
 * the latest samples of its streams ended. Each stream changes to it when its own timestamps do.
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
  beginsTimeBase(time: PesTime): boolean;
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

/** Decode times do not fall back with the presentation times of frames. */
const limitsWithDts = discontinuityLimits(ticksPerSecond, 0.5);

export function createClock(timelines: Timelines): Clock {
  const bases = new TimeBases(timelines);
  return {
    reset: (timing) => bases.reset(timing),
    open: () => openStream(bases, timelines),
  };
}

function openStream(bases: TimeBases, timelines: Timelines): StreamClock {
  const stream = bases.addStream();

  function beginsTimeBase({ dts, pts }: PesTime): boolean {
    const { base, latest } = stream;
    if (base === null) return false;
    const at = unwrap(dts, latest);
    const step = at - latest;
    if ((step < 0 || step > maxStep) && bases.findOther(stream, dts) !== undefined) return true;
    return isDiscontinuity(at, latest, base.latest, pts === dts ? limits : limitsWithDts);
  }

  return {
    beginsTimeBase,
    note(time) {
      const { dts, pts } = time;
      let { base } = stream;
      if (base === null || beginsTimeBase(time)) {
        base = bases.findOther(stream, dts) ?? bases.add(dts);
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
      if (base.shift === null && bases.isComplete(base)) bases.start(base);
      return base.shift !== null;
    },
    start() {
      stream.base ??= bases.newest();
      bases.start(stream.base);
    },
    time: (stamp) => unwrap(stamp, stream.latest) + (stream.base?.shift ?? 0),
    reach(end) {
      const { base } = stream;
      stream.end = Math.max(stream.end, Math.round(end));
      bases.reach(stream.end);
      if (base !== null) base.latest = Math.max(base.latest, end - (base.shift ?? 0));
      timelines.reach(end / ticksPerSecond);
    },
    close() {
      bases.removeStream(stream);
    },
  };
}
