import { createMpegTsDemuxer } from "../../src/remux/mpeg-ts/demuxer.ts";
import type { Sample, SampleSink, SegmentTiming, TrackFormat, TrackKind } from "../../src/remux/samples.ts";
import { Timelines } from "../../src/remux/timelines.ts";

interface RecordedTrack {
  formats: TrackFormat[];
  samples: Sample[];
}

export interface Recorder extends SampleSink {
  tracks: RecordedTrack[];
  /** Returns the only track of a kind. */
  track(kind: TrackKind): RecordedTrack;
}

/** Creates a sink that keeps formats and samples. */
export function createRecorder(): Recorder {
  const tracks: RecordedTrack[] = [];
  return {
    tracks,
    track(kind) {
      const found = tracks.filter(({ formats }) => formats[0]?.kind === kind);
      if (found.length !== 1) throw new Error(`there are ${found.length} tracks of ${kind}`);
      return found[0]!;
    },
    setFormat(format, track) {
      if (track === undefined) return tracks.push({ formats: [format], samples: [] }) - 1;
      tracks[track]!.formats.push(format);
      return track;
    },
    write(track, sample) {
      tracks[track]!.samples.push({ ...sample, data: Uint8Array.from(sample.data) });
    },
  };
}

export const start: SegmentTiming = { timeline: 0, offsetS: null };

/** Demuxes segments of one timeline; `sequences`: their numbers, default: unknown. */
export function demux(
  segments: readonly Uint8Array[],
  kinds: readonly TrackKind[] = ["video", "audio"],
  onDrop: (kind: TrackKind) => void = () => {},
  sequences: readonly number[] = [],
): Recorder {
  const recorder = createRecorder();
  const timelines = new Timelines();
  const demuxer = createMpegTsDemuxer({ sink: recorder, timelines, kinds, onDrop });
  for (const [i, segment] of segments.entries()) {
    const sequence = sequences[i];
    demuxer.read(segment, sequence === undefined ? start : { ...start, sequence });
  }
  demuxer.flush();
  return recorder;
}

/** Cuts `bytes` into segments of the lengths that `lengthAt` returns. */
export function cut(bytes: Uint8Array, lengthAt: (index: number) => number): Uint8Array[] {
  const segments: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += segments.at(-1)!.length) {
    segments.push(bytes.subarray(at, at + lengthAt(segments.length)));
  }
  return segments;
}
