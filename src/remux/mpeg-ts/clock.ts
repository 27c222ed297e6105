import type { SegmentTiming } from "../samples.ts";
import type { Timelines } from "../timelines.ts";

/** Timestamps of an MPEG-2 stream: ticks a second. */
export const ticksPerSecond = 90_000;

/** Turns 33-bit timestamps into ticks of 1/90000 s on the presentation timeline. */
export interface Clock {
  readonly isStarted: boolean;
  /** Another timeline: times wait for `start`. */
  reset(place: SegmentTiming): void;
  /** The streams of the timeline begin at these timestamps. */
  start(firsts: readonly number[]): void;
  /**
   * Presentation time of a timestamp. It goes on across the wrap after 26.5 h; where it falls back by
   * more than 10 s or leaps by more than 1 h, the stream began anew and is joined to what there is.
   */
  time(stamp: number): number;
  /** A sample ends at this presentation time, ticks. */
  reach(end: number): void;
}

/** A run of timestamps without a leap: the latest, unwrapped, and what makes it a presentation time. */
interface TimeBase {
  latest: number;
  shift: number;
}

const range = 2 ** 33;
const maxFallBack = 10 * ticksPerSecond;
const maxLeap = 3600 * ticksPerSecond;

export function createClock(timelines: Timelines): Clock {
  let place: SegmentTiming = { timeline: 0, offsetS: null };
  let runs: TimeBase[] = [];
  let reached = 0;
  return {
    get isStarted() {
      return runs.length > 0;
    },
    reset(next) {
      place = next;
      runs = [];
    },
    start(firsts) {
      const [base = 0] = firsts;
      const nearest = Math.min(base, ...firsts.map((stamp) => unwrap(stamp, base)));
      const lift = nearest < 0 ? range : 0;
      const first = nearest + lift;
      const offsetS = timelines.offset(place.timeline, place.offsetS, first / ticksPerSecond);
      const shift = Math.round(offsetS * ticksPerSecond);
      runs = [{ latest: base + lift, shift }];
      reached = first + shift;
    },
    time(stamp) {
      const run = runs.find(({ latest }) => isNear(unwrap(stamp, latest) - latest));
      if (run) {
        run.latest = unwrap(stamp, run.latest);
        return run.latest + run.shift;
      }
      runs = [{ latest: stamp, shift: reached - stamp }, ...runs.slice(0, 1)];
      return reached;
    },
    reach(end) {
      reached = Math.max(reached, Math.round(end));
      timelines.reach(end / ticksPerSecond);
    },
  };
}

/** The number nearest to `near` that is `stamp` modulo 2^33. */
export function unwrap(stamp: number, near: number): number {
  return stamp + Math.round((near - stamp) / range) * range;
}

function isNear(distance: number): boolean {
  return distance >= -maxFallBack && distance <= maxLeap;
}
