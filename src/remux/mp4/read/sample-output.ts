import { damagedError } from "../boxes.ts";
import type { IndexedSample } from "./indexed-sample.ts";
import { type InitTrack, secondsOf } from "./init.ts";
import { createSpanCut } from "./span-cut.ts";
import type { SegmentTiming, SampleSink, TrackFormat } from "../../samples.ts";
import type { Timelines } from "../../timelines.ts";
import { createTrackOutput } from "../../track-output.ts";

/** Writes samples into a sink: one track of the sink per kind, whatever init sections follow each other. */
export interface SampleOutput {
  /** Adds the track to the sink, before its first sample is known. */
  addTrack(track: InitTrack): void;
  /**
   * Writes `samples`, whose offsets count from the start of `bytes`, in the order of their decode times,
   * those of all tracks together.
   * @throws ServiceError `upstream_invalid` if a sample is not within `bytes` or has no sample entry.
   */
  write(bytes: Uint8Array, samples: IndexedSample[], timing: SegmentTiming): void;
}

export function createSampleOutput(sink: SampleSink, timelines: Timelines): SampleOutput {
  const outputs = { video: createTrackOutput(sink), audio: createTrackOutput(sink) };
  const cuts = { video: createSpanCut(outputs.video), audio: createSpanCut(outputs.audio) };

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
    timelines.reach(secondsOf(track, pts + duration) + offsetS);
  }

  return {
    addTrack(track) {
      const format = formatOf(track, track.defaults.entry);
      outputs[format.kind].setFormat(format);
    },
    write(bytes, samples, timing) {
      const { timeline, offsetS } = timing;
      if (samples.length === 0) return;
      const firstS = samples.reduce((least, { track, pts }) => {
        return Math.min(least, secondsOf(track, pts));
      }, Infinity);
      const offset = timelines.offset(timeline, offsetS, firstS);
      samples.sort((a, b) => secondsOf(a.track, a.dts) - secondsOf(b.track, b.dts));
      for (const sample of samples) writeSample(bytes, sample, offset, timing);
    },
  };
}

function formatOf({ formats }: InitTrack, entry: number): TrackFormat {
  // Some files have 0 where they mean the first.
  const format = formats[Math.max(entry, 1) - 1];
  if (format === undefined) {
    throw damagedError(`there is no sample entry ${entry}, but ${formats.length}`);
  }
  return format;
}
