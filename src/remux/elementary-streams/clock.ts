import type { SegmentTiming } from "../samples.ts";
import type { Timelines } from "../timelines.ts";

/** MPEG-2 timestamps count ticks of 1/90000 s. */
export const ticksPerSecond = 90_000;

/** Converts 33-bit timestamps to ticks on the presentation timeline. */
export interface Clock {
  readonly isStarted: boolean;
  /** Starts another timeline; `start` must follow before `time`. */
  reset(timing: SegmentTiming): void;
  /** Sets the first timestamps of the timeline's streams. */
  start(firsts: readonly number[]): void;
  /**
   * Returns the presentation time of a timestamp. It continues across the wrap after 26.5 h. If the
   * timestamp falls back by more than 10 s or leaps by more than 1 h, the stream has restarted and
   * continues where the latest sample ended.
   */
  time(stamp: number): number;
  /** Notes that a sample ends at this presentation time, in ticks. */
  reach(end: number): void;
}

/** Timestamps without a leap between them: presentation time = timestamp, unwrapped, + `shift`. */
interface TimeBase {
  /** The latest timestamp, unwrapped. */
  latest: number;
  shift: number;
}

const range = 2 ** 33;
const maxFallBack = 10 * ticksPerSecond;
const maxLeap = 3600 * ticksPerSecond;

export function createClock(timelines: Timelines): Clock {
  let timing: SegmentTiming = { timeline: 0, offsetS: null };
  /** The current time base and the one before: streams change over one after the other. */
  let bases: TimeBase[] = [];
  let reached = 0;
  return {
    get isStarted() {
      return bases.length > 0;
    },
    reset(next) {
      timing = next;
      bases = [];
    },
    start(firsts) {
      const [near = 0] = firsts;
      const earliest = Math.min(near, ...firsts.map((stamp) => unwrap(stamp, near)));
      const lift = earliest < 0 ? range : 0;
      const first = earliest + lift;
      const offsetS = timelines.offset(timing.timeline, timing.offsetS, first / ticksPerSecond);
      const shift = Math.round(offsetS * ticksPerSecond);
      bases = [{ latest: near + lift, shift }];
      reached = first + shift;
    },
    time(stamp) {
      const base = bases.find(({ latest }) => isNear(unwrap(stamp, latest) - latest));
      if (base) {
        base.latest = unwrap(stamp, base.latest);
        return base.latest + base.shift;
      }
      bases = [{ latest: stamp, shift: reached - stamp }, ...bases.slice(0, 1)];
      return reached;
    },
    reach(end) {
      reached = Math.max(reached, Math.round(end));
      timelines.reach(end / ticksPerSecond);
    },
  };
}

/** Returns the number nearest to `near` that is `stamp` modulo 2^33. */
export function unwrap(stamp: number, near: number): number {
  return stamp + Math.round((near - stamp) / range) * range;
}

function isNear(distance: number): boolean {
  return distance >= -maxFallBack && distance <= maxLeap;
}
