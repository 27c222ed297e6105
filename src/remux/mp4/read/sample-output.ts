import { damagedError } from "../boxes.ts";
import type { IndexedSample } from "./indexed-sample.ts";
import { type InitTrack, secondsOf } from "./init.ts";
import { createSpanCut } from "./span-cut.ts";
import type { SegmentTiming, SampleSink, TrackFormat, TrackKind } from "../../samples.ts";
import type { Timelines } from "../../timelines.ts";
import { createTrackOutput } from "../../track-output.ts";

/** Writes samples into a sink: one track of the sink per kind, whatever init sections follow each other. */
export interface SampleOutput {
  /** Adds the track to the sink, before its first sample is known. */
  addTrack(track: InitTrack): void;
  /**
   * Writes `samples`, whose offsets count from the start of `bytes`, in the order of their decode times,
   * those of all tracks together. If those of a track fall back by more than 1 s within a timeline without a
   * stated offset, or leap by more than 20 s, they continue where the latest sample ended.
   * @throws ServiceError `upstream_invalid` if a sample is not within `bytes` or has no sample entry.
   */
  write(bytes: Uint8Array, samples: IndexedSample[], timing: SegmentTiming): void;
}

export function createSampleOutput(sink: SampleSink, timelines: Timelines): SampleOutput {
  const outputs = { video: createTrackOutput(sink), audio: createTrackOutput(sink) };
  const cuts = { video: createSpanCut(outputs.video), audio: createSpanCut(outputs.audio) };
  let place = startTimeline(null);

  /** Returns the seconds to add to the media times of `samples`. */
  function offsetOf(samples: readonly IndexedSample[], timing: SegmentTiming): number {
    const { timeline, offsetS } = timing;
    if (timeline !== place.timeline) place = startTimeline(timeline);
    const firstS = samples.reduce((least, { track, pts }) => {
      return Math.min(least, secondsOf(track, pts));
    }, Infinity);
    const offset = timelines.offset(timeline, offsetS, firstS) + place.leapS;
    if (offsetS !== null || !isLeap(samples, offset, place)) return offset;
    const leap = { source: outputs, timeline, firstS, atS: place.reachedS };
    const moved = timelines.leap(leap) - firstS;
    place.leapS += moved - offset;
    return moved;
  }

  function writeSample(
    bytes: Uint8Array,
    sample: IndexedSample,
    offsetS: number,
    timing: SegmentTiming,
  ): void {
    const { track, entry, offset, size, dts, pts, duration, isSync } = sample;
    if (offset < 0 || offset + size > bytes.length) {
      throw damagedError(`a sample of ${size} bytes is at ${offset} of ${bytes.length} bytes`);
    }
    const format = formatOf(track, entry);
    const { timescale } = outputs[format.kind];
    const ratio = timescale / format.timescale;
    const shift = Math.round(offsetS * timescale);
    const ticks = (time: number): number => Math.round((time - track.shiftTicks) * ratio) + shift;
    const moved = {
      data: bytes.subarray(offset, offset + size),
      dts: ticks(dts),
      pts: ticks(pts),
      duration: Math.round(duration * ratio),
      isSync,
    };
    cuts[format.kind].write(format, moved, timing, pts < track.shiftTicks);
    const endS = secondsOf(track, pts + duration) + offsetS;
    place.ends[format.kind] = secondsOf(track, dts + duration) + offsetS;
    place.reachedS = Math.max(place.reachedS, endS);
    timelines.reach(endS);
  }

  return {
    addTrack(track) {
      const format = formatOf(track, track.defaults.entry);
      outputs[format.kind].setFormat(format);
    },
    write(bytes, samples, timing) {
      if (samples.length === 0) return;
      const offset = offsetOf(samples, timing);
      samples.sort((a, b) => secondsOf(a.track, a.dts) - secondsOf(b.track, b.dts));
      for (const sample of samples) writeSample(bytes, sample, offset, timing);
    },
  };
}

/** How far a timeline has been written, seconds. */
interface Place {
  timeline: number | null;
  /** Decode time at which the latest sample of each kind ends; −Infinity: none yet. */
  ends: Record<TrackKind, number>;
  /** Presentation time at which the latest sample ends. */
  reachedS: number;
  /** Sum of the leaps. */
  leapS: number;
}

function startTimeline(timeline: number | null): Place {
  const ends = { video: -Infinity, audio: -Infinity };
  return { timeline, ends, reachedS: -Infinity, leapS: 0 };
}

const maxFallBackS = 1;
const maxLeapS = 20;

/** Returns whether the first sample of a track does not continue those before. */
function isLeap(samples: readonly IndexedSample[], offsetS: number, { ends }: Place): boolean {
  const latest = Math.max(ends.video, ends.audio);
  if (latest === -Infinity) return false;
  const tracks = new Set(samples.map(({ track }) => track));
  return [...tracks].some((track) => {
    const first = samples.find((sample) => sample.track === track)!;
    const atS = secondsOf(track, first.dts) + offsetS;
    return atS < ends[first.track.formats[0]!.kind] - maxFallBackS || atS > latest + maxLeapS;
  });
}

function formatOf({ formats }: InitTrack, entry: number): TrackFormat {
  // Some files have 0 where they mean the first.
  const format = formats[Math.max(entry, 1) - 1];
  if (format === undefined) {
    throw damagedError(`there is no sample entry ${entry}, but ${formats.length}`);
  }
  return format;
}
