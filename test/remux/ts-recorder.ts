import { createMpegTsDemuxer } from "../../src/remux/mpeg-ts/demuxer.ts";
import type {
  Sample,
  SampleSink,
  SegmentTiming,
  TrackFormat,
  TrackKind,
} from "../../src/remux/samples.ts";
import { createTimelines } from "../../src/remux/timelines.ts";

export interface RecordedTrack {
  formats: TrackFormat[];
  samples: Sample[];
}

export interface Recorder extends SampleSink {
  tracks: RecordedTrack[];
  /** The one track of a kind. */
  track(kind: TrackKind): RecordedTrack;
}

/** A sink that keeps what it is given. */
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

/** What comes out of pieces of one timeline. */
export function demux(
  pieces: readonly Uint8Array[],
  kinds: readonly TrackKind[] = ["video", "audio"],
): Recorder {
  const recorder = createRecorder();
  const demuxer = createMpegTsDemuxer({ sink: recorder, timelines: createTimelines(), kinds });
  for (const piece of pieces) demuxer.read(piece, start);
  demuxer.flush();
  return recorder;
}

/** `bytes` in pieces of lengths that `lengthAt` says. */
export function cut(bytes: Uint8Array, lengthAt: (index: number) => number): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += pieces.at(-1)!.length) {
    pieces.push(bytes.subarray(at, at + lengthAt(pieces.length)));
  }
  return pieces;
}
