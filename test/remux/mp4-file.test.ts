import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildMp4, type Tables } from "../media/hostile-mp4.ts";
import { box, fullBox, u16, u32 } from "../../src/remux/mp4/boxes.ts";
import { createMp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import type { Sample, TrackKind } from "../../src/remux/samples.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { openFolder, start } from "./mp4-media.ts";
import {
  audioFormat,
  createRecorder,
  fillPattern,
  fragmentOf,
  indexOf,
  replaceTable,
  videoFormat,
} from "./mp4-samples.ts";

const folder = openFolder();
const path = folder.path("source.mp4");

function sampleAt(number: number, size: number): Sample {
  const dts = number * 1000;
  return { data: fillPattern(size, number), dts, pts: dts, duration: 1000, isSync: true };
}

function writeFile(sizes: readonly number[], ...others: readonly Sample[]): void {
  const writer = new Mp4Writer({ path, expectedS: 1 });
  const video = writer.setFormat(videoFormat);
  for (const [i, size] of sizes.entries()) writer.write(video, sampleAt(i, size));
  if (others.length > 0) {
    const audio = writer.setFormat(audioFormat);
    for (const sample of others) writer.write(audio, sample);
  }
  writer.finish();
}

function openReader(kinds: readonly TrackKind[] = ["video", "audio"]) {
  const recorder = createRecorder();
  const demuxer = createMp4Demuxer({ sink: recorder.sink, timelines: new Timelines(), kinds });
  return { ...recorder, demuxer };
}

/** Replaces `stsz` by `stz2` and a `free` box, so that nothing moves. */
function withSmallSizes(file: Buffer, sizes: readonly number[], bits: number): Buffer {
  const digits = sizes.map((size) => size.toString(16).padStart(bits / 4, "0")).join("");
  const numbers = Buffer.from(digits.length % 2 === 0 ? digits : `${digits}0`, "hex");
  const table = fullBox("stz2", 0, 0, u32(bits, sizes.length), numbers);
  const left = 20 + 4 * sizes.length - table.length;
  const rest = box("free", new Uint8Array(left - 8));
  return replaceTable(file, Buffer.concat([table, rest]), "stsz");
}

describe("an MP4 file", () => {
  it("is read in steps of 8 MiB or a single larger sample", () => {
    const sizes = [5, 5, 1, 9, 3, 3].map((size) => size << 20);
    writeFile(sizes);
    const { tracks, demuxer } = openReader();
    const counts = [];
    for (const _ of demuxer.readFile({ path }, start)) counts.push(tracks[0]!.length);
    expect(counts).toEqual([1, 3, 4, 6]);
    const wrong = tracks[0]!.filter(({ data }, i) => !data.equals(fillPattern(sizes[i]!, i)));
    expect(wrong).toEqual([]);
  });

  it.each([4, 8, 16])("may have sizes of %d bits", (bits) => {
    const sizes = Array.from({ length: 11 }, (_, n) => n + 1);
    writeFile(sizes);
    const { tracks, demuxer } = openReader();
    demuxer.read(withSmallSizes(readFileSync(path), sizes, bits), start);
    expect(tracks[0]!.map(({ data }) => data.length)).toEqual(sizes);
  });

  describe("of QuickTime, whose audio has a size of 1 for each sample,", () => {
    it("has uncompressed samples of the size that their entry states", () => {
      const read = (tables: Tables) => {
        const { tracks, demuxer } = openReader();
        demuxer.read(buildMp4({ durations: u32(1, 10, 1), ...tables }), start);
        return tracks[0]!.map(({ data, duration }) => [data.length, duration]);
      };
      const ones = u32(1, 10);
      const ten = (sample: number[]) => Array.from({ length: 10 }, () => sample);
      expect(read({ codec: "sowt", sizes: ones })).toEqual([[20, 10]]);
      expect(read({ codec: "sowt", sizes: u32(4, 10) })).toEqual([[40, 10]]);
      expect(read({ codec: "avc1", sizes: ones })).toEqual(ten([1, 1]));
    });

    it("has uncompressed samples that follow each other in a chunk read together, up to 128 ticks", () => {
      const read = (tables: Tables) => {
        const { tracks, demuxer } = openReader();
        demuxer.read(buildMp4({ codec: "sowt", ...tables }), start);
        return tracks[0]!.map(({ data, dts, duration }) => [data.length, dts, duration]);
      };
      const sizes = u32(4, 300);
      const whole = [128, 128, 44].map((samples, n) => [4 * samples, 128 * n, samples]);
      expect(read({ sizes, durations: u32(1, 300, 1), runs: u32(1, 1, 300, 1) })).toEqual(whole);
      const chunks = { runs: u32(1, 1, 150, 1), chunks: u32(2, 48, 648) };
      const apart = [128, 22, 128, 22].map((samples) => 4 * samples);
      expect(read({ sizes, durations: u32(1, 300, 1), ...chunks }).map(([bytes]) => bytes)).toEqual(apart);
      // A pause begins after the sample that lasts longer; and long ones stay apart.
      const paused = [
        [40, 0, 99],
        [512, 99, 128],
        [512, 227, 128],
        [136, 355, 34],
      ];
      expect(read({ sizes, durations: u32(3, 9, 1, 1, 90, 290, 1), runs: u32(1, 1, 300, 1) })).toEqual(paused);
      expect(read({ sizes: u32(4, 3), durations: u32(1, 3, 128), runs: u32(1, 1, 3, 1) })).toHaveLength(3);
      expect(read({ sizes: u32(0, 3, 4, 4, 4), durations: u32(1, 3, 1), runs: u32(1, 1, 3, 1) })).toHaveLength(3);
    });

    it("has packets of as many samples as their entry states", () => {
      const fields = [new Uint8Array(6), u16(1, 1, 0), u32(0), u16(2, 16, 0xfffe, 0), u32(48_000 << 16)];
      const sampleEntry = box("ima4", ...fields, u32(64, 34, 68, 2));
      const writer = new Mp4Writer({ path, expectedS: 1 });
      const audio = writer.setFormat({ ...audioFormat, sampleEntry });
      const packets = [0, 1, 2].map((n) => fillPattern(68, n));
      for (const [n, data] of packets.entries()) {
        writer.write(audio, { data, dts: n * 64, pts: n * 64, duration: 64, isSync: true });
      }
      writer.finish();
      const tables = [fullBox("stsz", 0, 0, u32(1, 192)), fullBox("stts", 0, 0, u32(1, 192, 1))];
      const runs = fullBox("stsc", 0, 0, u32(1, 1, 192, 1));
      const file = [...tables, runs].reduce<Buffer>(
        (changed, table) => replaceTable(changed, table),
        readFileSync(path),
      );
      const { tracks, demuxer } = openReader();
      demuxer.read(file, start);
      expect(tracks[0]!.map(({ data, pts, duration }) => ({ data, pts, duration }))).toEqual(
        packets.map((data, n) => ({ data, pts: n * 64, duration: 64 })),
      );
    });
  });

  it("is read in steps of 4096 samples", () => {
    writeFile(Array.from({ length: 10_000 }, () => 10));
    const { tracks, demuxer } = openReader();
    const counts = [];
    for (const _ of demuxer.readFile({ path }, start)) counts.push(tracks[0]!.length);
    expect(counts).toEqual([4096, 8192, 10_000]);
  });

  it("is read in the order of decode times, wherever its samples are", () => {
    const audio = [0, 1, 2].map((i) => ({ ...sampleAt(i, 10), dts: i * 1920, pts: i * 1920 }));
    writeFile([10, 20, 30], ...audio);
    const order: string[] = [];
    const kinds = ["video", "audio"] as const;
    const sink = {
      setFormat: ({ kind }: { kind: TrackKind }) => kinds.indexOf(kind),
      write: (track: number, { data }: Sample) => void order.push(`${kinds[track]} ${data.length}`),
    };
    const demuxer = createMp4Demuxer({ sink, timelines: new Timelines(), kinds });
    for (const _ of demuxer.readFile({ path }, start));
    const pairs = [10, 20, 30].flatMap((size) => [`video ${size}`, "audio 10"]);
    expect(order).toEqual(pairs);
  });

  it("has only the samples of the wanted kinds read", () => {
    writeFile([9 << 20], sampleAt(0, 10));
    const { tracks, demuxer } = openReader(["audio"]);
    for (const _ of demuxer.readFile({ path }, start));
    expect(tracks).toMatchObject([[{ data: fillPattern(10, 0) }]]);
  });

  it("may have more samples than a segment", () => {
    const count = (1 << 20) + 1;
    writeFile([count + 4]);
    const tables = [
      fullBox("stsz", 0, 0, u32(1, count)),
      fullBox("stts", 0, 0, u32(1, count, 1000)),
      fullBox("stsc", 0, 0, u32(1, 1, count, 1)),
    ];
    const file = tables.reduce<Buffer>((bytes, table) => replaceTable(bytes, table), readFileSync(path));
    writeFileSync(path, file);
    let samples = 0;
    const sink = { setFormat: () => 0, write: () => void samples++ };
    const demuxer = createMp4Demuxer({ sink, timelines: new Timelines(), kinds: ["video"] });
    for (const _ of demuxer.readFile({ path }, start));
    expect(samples).toBe(count);
  });

  it("is read fragment by fragment, also after an init section of its own", () => {
    writeFile([10]);
    const index = indexOf(path);
    const fragments = [0, 1, 2].map((i) => fragmentOf([[sampleAt(i, 10)]]));
    const { tracks, demuxer } = openReader();
    demuxer.read(index, start);
    writeFileSync(path, Buffer.concat(fragments));
    const counts = [];
    for (const _ of demuxer.readFile({ path }, start)) counts.push(tracks[0]!.length);
    expect(counts).toEqual([1, 2, 3]);
    expect(tracks[0]!.map(({ dts }) => dts)).toEqual([0, 1000, 2000]);
  });
});
