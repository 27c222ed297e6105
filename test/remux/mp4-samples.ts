import { readFileSync } from "node:fs";
import { ascii, box, boxesIn, fullBox, u16, u32, u64 } from "../../src/remux/mp4/boxes.ts";
import { createMp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import type { Sample, SampleSink, TrackFormat } from "../../src/remux/samples.ts";
import { Timelines } from "../../src/remux/timelines.ts";

export const videoFormat: TrackFormat = {
  kind: "video",
  timescale: 25_000,
  sampleEntry: box("avc1", new Uint8Array(6), u16(1), new Uint8Array(16), u16(64, 36), new Uint8Array(50)),
  width: 64,
  height: 36,
  language: null,
};

export const audioFormat: TrackFormat = {
  kind: "audio",
  timescale: 48_000,
  sampleEntry: box("mp4a", new Uint8Array(6), u16(1), u32(0, 0), u16(2, 16, 0, 0), u32(48_000 << 16)),
  width: 0,
  height: 0,
  language: null,
};

/** Returns bytes that differ from sample to sample. */
export function fillPattern(bytes: number, number: number): Buffer {
  return Buffer.alloc(bytes, ascii(`sample ${number} `));
}

interface ReadSample extends Omit<Sample, "data"> {
  data: Buffer;
  /** Presentation time, seconds. */
  shownS: number;
  /** Number of its format, from 1 in the order of their first use. */
  entry: number;
  language: string | null;
}

/** Creates a sink that keeps all samples, track by track. */
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

/** Returns the samples in the MP4 file at `path`, track by track. */
export function samplesIn(path: string): ReadSample[][] {
  const { sink, tracks } = createRecorder();
  const kinds = ["video", "audio"] as const;
  const demuxer = createMp4Demuxer({ sink, timelines: new Timelines(), kinds });
  demuxer.read(readFileSync(path), { timeline: 0, offsetS: null });
  return tracks;
}

/** Returns the boxes of the MP4 file at `path` that come before its media data. */
export function indexOf(path: string): Buffer {
  const bytes = readFileSync(path);
  const data = [...boxesIn(bytes)].find(({ type }) => type === "mdat");
  return bytes.subarray(0, data?.start);
}

/** Replaces a sample table of an MP4 file's first track; media data move by the difference in size. */
export function replaceTable(file: Buffer, table: Uint8Array, type?: string): Buffer {
  const at = file.indexOf(type ?? Buffer.from(table.subarray(4, 8))) - 4;
  const end = at + file.readUInt32BE(at);
  const changed = Buffer.concat([file.subarray(0, at), table, file.subarray(end)]);
  for (const parent of ["moov", "trak", "mdia", "minf", "stbl"]) {
    const start = file.indexOf(parent) - 4;
    changed.writeUInt32BE(file.readUInt32BE(start) + changed.length - file.length, start);
  }
  return changed;
}

/** Returns a `moof` and its `mdat` with these samples of each track; the track ids count from 1. */
export function fragmentOf(tracks: readonly (readonly Sample[])[]): Buffer {
  const { length } = fragmentBox(tracks, 0);
  const data = tracks.flat().map((sample) => sample.data);
  return Buffer.concat([fragmentBox(tracks, length + 8), box("mdat", ...data)]);
}

/** @param dataStart Offset of the first sample from the start of the box. */
function fragmentBox(tracks: readonly (readonly Sample[])[], dataStart: number): Uint8Array {
  let at = dataStart;
  const parts = tracks.map((samples, i) => {
    const rows = samples.flatMap(({ data, dts, pts, duration, isSync }) => {
      return [duration, data.length, isSync ? 0 : 0x10000, pts - dts];
    });
    const offset = at;
    for (const { data } of samples) at += data.length;
    return box(
      "traf",
      fullBox("tfhd", 0, 0x20000, u32(i + 1)),
      fullBox("tfdt", 1, 0, u64(samples[0]?.dts ?? 0)),
      fullBox("trun", 1, 0xf01, u32(samples.length, offset, ...rows)),
    );
  });
  return box("moof", fullBox("mfhd", 0, 0, u32(0)), ...parts);
}
