import type { Sample, SampleSink, TrackFormat } from "../samples.ts";

/** One track of a sink, which appears with its first format and keeps the timescale of that. */
export interface TrackOutput {
  /** Ticks per second; 0 before the first format. */
  readonly timescale: number;
  setFormat(format: TrackFormat): void;
  write(sample: Sample): void;
}

export function createTrackOutput(sink: SampleSink): TrackOutput {
  let track: number | undefined;
  let timescale = 0;
  let entry: Uint8Array = new Uint8Array();
  return {
    get timescale() {
      return timescale;
    },
    setFormat(format) {
      if (track !== undefined && Buffer.compare(entry, format.sampleEntry) === 0) return;
      entry = format.sampleEntry;
      timescale ||= format.timescale;
      track = sink.setFormat({ ...format, timescale }, track);
    },
    write(sample) {
      if (track !== undefined) sink.write(track, sample);
    },
  };
}
