import { readFileSync } from "node:fs";
import { ascii, box, u16, u32 } from "../../src/remux/mp4/boxes.ts";
import { createFmp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import type { Sample, SampleSink, TrackFormat } from "../../src/remux/samples.ts";
import { createTimelines } from "../../src/remux/timelines.ts";

export const videoFormat: TrackFormat = {
  kind: "video",
  timescale: 25_000,
  sampleEntry: box(
    "avc1",
    new Uint8Array(6),
    u16(1),
    new Uint8Array(16),
    u16(64, 36),
    new Uint8Array(50),
  ),
  width: 64,
  height: 36,
  language: null,
};

export const audioFormat: TrackFormat = {
  kind: "audio",
  timescale: 48_000,
  sampleEntry: box(
    "mp4a",
    new Uint8Array(6),
    u16(1),
    u32(0, 0),
    u16(2, 16, 0, 0),
    u32(48_000 << 16),
  ),
  width: 0,
  height: 0,
  language: null,
};

/** Bytes that tell one sample from the others. */
export function fillPattern(bytes: number, number: number): Buffer {
  return Buffer.alloc(bytes, ascii(`sample ${number} `));
}

export interface ReadSample extends Omit<Sample, "data"> {
  data: Buffer;
  /** Presentation time, seconds. */
  shownS: number;
  /** Which of the formats in force so far it has, from 1 in the order of their first use. */
  entry: number;
  language: string | null;
}

/** A sink that keeps all it is given, track by track. */
export function createRecorder(): { sink: SampleSink; tracks: ReadSample[][] } {
  const tracks: ReadSample[][] = [];
  const formats: TrackFormat[] = [];
  const entries: string[][] = [];
  return {
    tracks,
    sink: {
      setFormat(format, track = tracks.push([]) - 1) {
        formats[track] = format;
        const entry = Buffer.from(format.sampleEntry).toString("hex");
        const known = (entries[track] ??= []);
        if (!known.includes(entry)) known.push(entry);
        return track;
      },
      write(track, sample) {
        const { timescale, sampleEntry, language } = formats[track]!;
        const entry = entries[track]!.indexOf(Buffer.from(sampleEntry).toString("hex")) + 1;
        const shownS = sample.pts / timescale;
        tracks[track]!.push({ ...sample, data: Buffer.from(sample.data), shownS, entry, language });
      },
    },
  };
}

/** What is in the MP4 file at `path`, by the demuxer. */
export function samplesIn(path: string): ReadSample[][] {
  const { sink, tracks } = createRecorder();
  const kinds = ["video", "audio"] as const;
  const demuxer = createFmp4Demuxer({ sink, timelines: createTimelines(), kinds });
  demuxer.read(readFileSync(path), { timeline: 0, offsetS: null });
  return tracks;
}
