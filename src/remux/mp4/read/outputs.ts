import { damaged } from "../boxes.ts";
import type { InitTrack } from "./init.ts";
import type { PlacedSample } from "./trun.ts";
import type { SegmentTiming, SampleSink, TrackFormat } from "../../samples.ts";
import type { Timelines } from "../../timelines.ts";

/** The tracks of a sink that the tracks of one init section after the other go into, one for each kind. */
export interface Fmp4Outputs {
  announce(track: InitTrack): void;
  /** Hands on the samples of one fragment in the order of their decode times, those of all tracks together. */
  write(piece: Uint8Array, samples: PlacedSample[], place: SegmentTiming): void;
}

interface Output {
  number: number;
  timescale: number;
  sampleEntry: Uint8Array;
}

export function createFmp4Outputs(sink: SampleSink, timelines: Timelines): Fmp4Outputs {
  const outputs = new Map<TrackFormat["kind"], Output>();

  /** The output for samples of `format`; its timescale stays what it was at first. */
  function outputFor(format: TrackFormat): Output {
    const { kind, sampleEntry } = format;
    const known = outputs.get(kind);
    if (known !== undefined && Buffer.compare(known.sampleEntry, sampleEntry) === 0) return known;
    const timescale = known?.timescale ?? format.timescale;
    const number = sink.setFormat({ ...format, timescale }, known?.number);
    const output = { number, timescale, sampleEntry };
    outputs.set(kind, output);
    return output;
  }

  function write(
    piece: Uint8Array,
    { track, entry, start, size, dts, pts, duration, isSync }: PlacedSample,
    offsetS: number,
  ): void {
    const format = formatOf(track, entry);
    const { number, timescale } = outputFor(format);
    const ratio = timescale / format.timescale;
    const offset = Math.round(offsetS * timescale);
    const ticks = (time: number): number => Math.round((time - track.shiftTicks) * ratio) + offset;
    if (start < 0 || start + size > piece.length) {
      throw damaged(`a sample of ${size} bytes is said to be at ${start} of ${piece.length}`);
    }
    sink.write(number, {
      data: piece.subarray(start, start + size),
      dts: ticks(dts),
      pts: ticks(pts),
      duration: Math.round(duration * ratio),
      isSync,
    });
    timelines.reach(secondsOf(track, pts + duration) + offsetS);
  }

  return {
    announce(track) {
      outputFor(formatOf(track, track.defaults.entry));
    },
    write(piece, samples, { timeline, offsetS }) {
      if (samples.length === 0) return;
      const firstS = samples.reduce((least, { track, pts }) => {
        return Math.min(least, secondsOf(track, pts));
      }, Infinity);
      const offset = timelines.offset(timeline, offsetS, firstS);
      samples.sort((a, b) => secondsOf(a.track, a.dts) - secondsOf(b.track, b.dts));
      for (const sample of samples) write(piece, sample, offset);
    },
  };
}

function formatOf({ formats }: InitTrack, entry: number): TrackFormat {
  // Some index says 0 where it means the first.
  const format = formats[Math.max(entry, 1) - 1];
  if (format === undefined)
    throw damaged(`there are ${formats.length} sample entries, no ${entry}`);
  return format;
}

/** Presentation time before the timeline's offset. */
function secondsOf({ formats, shiftTicks }: InitTrack, ticks: number): number {
  return (ticks - shiftTicks) / formats[0]!.timescale;
}
