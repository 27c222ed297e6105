import { expect, it } from "vitest";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { createMp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import type { Sample, TrackFormat } from "../../src/remux/samples.ts";
import { makeAudioEntry, makeEsds } from "../../src/remux/mp4/sample-entry.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { openFolder, start } from "./mp4-media.ts";
import { audioFormat, fillPattern, fragmentOf, indexOf, videoFormat } from "./mp4-samples.ts";
import { adtsFrames, audioPid, createPacketMaker } from "./ts-packet-maker.ts";
import { createRecorder, demux } from "./ts-recorder.ts";

const folder = openFolder();

/** Frames of 1920 ticks of the clock of MPEG-TS, which differ. */
function segmentOf(from: number, to: number, perPacket = 1): Buffer {
  const maker = createPacketMaker();
  const packets = [maker.tables([{ pid: audioPid, streamType: 0x0f }])];
  for (let at = from; at < to; at += perPacket) {
    const frames = Array.from({ length: perPacket }, (_, i) => adtsFrames(1, 100 + ((at + i) % 50)));
    packets.push(maker.pes(audioPid, at * 1920, Buffer.concat(frames)));
  }
  return Buffer.concat(packets);
}

it.each([1, 2])(
  "frames of MPEG-TS with which a segment repeats the end of the one before are left out, %i a packet",
  (n) => {
    const { samples } = demux([segmentOf(0, 20, n), segmentOf(18, 40, n), segmentOf(30, 60, n)]).track("audio");
    expect(samples.map(({ dts }) => dts)).toEqual(Array.from({ length: 60 }, (_, i) => i * 1024));
    expect(samples.map(({ data }) => data.length)).toEqual(Array.from({ length: 60 }, (_, i) => 93 + (i % 50)));
  },
);

it("frames of MPEG-TS that are alike stay, and so do others at the same times", () => {
  const maker = createPacketMaker();
  const silence = Array.from({ length: 20 }, (_, i) => maker.pes(audioPid, i * 1920, adtsFrames(1)));
  const tables = maker.tables([{ pid: audioPid, streamType: 0x0f }]);
  expect(demux([tables, ...silence]).track("audio").samples).toHaveLength(20);
  const others = [maker.pes(audioPid, 17 * 1920, adtsFrames(1, 99)), maker.pes(audioPid, 18 * 1920, adtsFrames(2, 98))];
  expect(demux([tables, ...silence, ...others]).track("audio").samples).toHaveLength(23);
});

it("samples of fragments that a segment repeats of the one before are left out, but not other ones", () => {
  const frames = Array.from({ length: 40 }, (_, i): Sample => {
    return { data: fillPattern(50 + i, i), dts: i * 1024, pts: i * 1024, duration: 1024, isSync: true };
  });
  const writer = new Mp4Writer({ path: folder.path("init.mp4"), expectedS: 1 });
  writer.write(writer.setFormat(audioFormat), frames[0]!);
  writer.finish();
  const read = (...segments: Sample[][]) => {
    const recorder = createRecorder();
    const demuxer = createMp4Demuxer({ sink: recorder, timelines: new Timelines(), kinds: ["audio"] });
    const parts = segments.map((samples) => fragmentOf([samples]));
    for (const bytes of [indexOf(folder.path("init.mp4")), ...parts]) demuxer.read(bytes, start);
    demuxer.flush();
    return recorder.track("audio").samples.map(({ dts }) => dts / 1024);
  };
  const all = frames.map((_, i) => i);
  expect(read(frames.slice(0, 20), frames.slice(17, 30), frames.slice(29))).toEqual(all);
  const other = { ...frames[19]!, data: fillPattern(60, 7) };
  expect(read(frames.slice(0, 20), [other, ...frames.slice(20)])).toEqual(all.toSpliced(19, 0, 19));
});

/** Returns the decode times that the MP4 demuxer has of these fragments of one track, in so many ticks, and how long the samples last. */
function readTimes(format: TrackFormat, segments: readonly (readonly Sample[])[], ticks: number) {
  const writer = new Mp4Writer({ path: folder.path("times.mp4"), expectedS: 1 });
  writer.write(writer.setFormat(format), segments[0]![0]!);
  writer.finish();
  const recorder = createRecorder();
  const demuxer = createMp4Demuxer({ sink: recorder, timelines: new Timelines(), kinds: [format.kind] });
  const parts = segments.map((samples) => fragmentOf([samples]));
  for (const bytes of [indexOf(folder.path("times.mp4")), ...parts]) demuxer.read(bytes, { ...start });
  demuxer.flush();
  const { samples } = recorder.track(format.kind);
  return samples.map(({ dts, duration }) => [dts / ticks, duration / ticks]);
}

/** Pictures of an open GOP, of which only the very first is a key picture; `from` and `to` count in them. */
function pictures(from: number, to: number, fill = 0): Sample[] {
  return Array.from({ length: to - from }, (_, i): Sample => {
    const at = (from + i) * 1000;
    return { data: fillPattern(50 + from + i, from + i + fill), dts: at, pts: at, duration: 1000, isSync: at === 0 };
  });
}

const once = (count: number) => Array.from({ length: count }, (_, i) => [i, 1]);

it.each([25, 60])("the last %i pictures, with which a segment begins once more, are left out", (count) => {
  const segments = [pictures(0, count), pictures(0, 2 * count), pictures(count, 3 * count)];
  expect(readTimes(videoFormat, segments, 1000)).toEqual(once(3 * count));
});

it("pictures stay that are others, that are not the last ones, or that no others follow", () => {
  const times = (...segments: Sample[][]) => readTimes(videoFormat, segments, 1000).map(([at]) => at);
  const all = once(25).map(([at]) => at);
  expect(times(pictures(0, 25), pictures(10, 25, 7), pictures(25, 30))).toHaveLength(45);
  expect(times(pictures(0, 25), [...pictures(10, 24), ...pictures(25, 30)])).toHaveLength(44);
  // The next one is another one at its time, as of a packager that starts anew.
  expect(times(pictures(0, 25), [...pictures(10, 24), ...pictures(24, 30, 7)])).toHaveLength(45);
  const again = times(pictures(0, 25), pictures(0, 25));
  expect(again).toHaveLength(50);
  expect(again.slice(0, 25)).toEqual(all);
});

it("audio in fragments of one packet, of which every second states where it ends, is as long as its packets", () => {
  const packet = (dts: number, duration: number): Sample => {
    return { data: fillPattern(90, dts + duration), dts, pts: dts, duration, isSync: true };
  };
  const pairs = [2, 4, 6].flatMap((at) => [[packet(at * 960, 0)], [packet(at * 960, 960)]]);
  expect(readTimes(audioFormat, [[packet(0, 960)], ...pairs], 960)).toEqual(once(7));
  // A longer pause is one: packets are missing.
  const lost = [[packet(0, 960)], [packet(3 * 960, 0)], [packet(3 * 960, 960)]];
  expect(readTimes(audioFormat, lost, 960).map(([at]) => at)).toEqual([0, 3, 3]);
});

/** The sample entry of AAC with this AudioSpecificConfig. */
const aacEntry = (rate: number, ...specific: number[]) =>
  makeAudioEntry({ type: "mp4a", configuration: makeEsds(0x40, Buffer.from(specific)), channels: 2, sampleRate: rate });

it("audio in fragments gets ticks that are samples, of AAC with SBR those of its core", () => {
  const ticksOf = (timescale: number, sampleEntry = audioFormat.sampleEntry) => {
    const path = folder.path("ticks.mp4");
    const frames = [0, 1, 2].map((i): Sample => {
      const [from, to] = [i, i + 1].map((at) => Math.round((at * 1024 * timescale) / 48_000)) as [number, number];
      return { data: fillPattern(50, i), dts: from, pts: from, duration: to - from, isSync: true };
    });
    const writer = new Mp4Writer({ path, expectedS: 1 });
    writer.write(writer.setFormat({ ...audioFormat, timescale, sampleEntry }), frames[0]!);
    writer.finish();
    // Fragments have no edits that hold for all of them.
    const init = Buffer.from(indexOf(path).toString("latin1").replace("edts", "free"), "latin1");
    const recorder = createRecorder();
    const demuxer = createMp4Demuxer({ sink: recorder, timelines: new Timelines(), kinds: ["audio"] });
    for (const bytes of [init, fragmentOf([frames.slice(1)])]) demuxer.read(bytes, start);
    const { formats, samples } = recorder.track("audio");
    return [formats[0]!.timescale, ...samples.map(({ dts }) => dts)];
  };
  expect(ticksOf(10_000_000)).toEqual([48_000, 1024, 2048]);
  expect(ticksOf(90_000)).toEqual([48_000, 1024, 2048]);
  expect(ticksOf(48_000)).toEqual([48_000, 1024, 2048]);
  expect(ticksOf(24_000)).toEqual([48_000, 1024, 2048]);
  // A rate of more than 16 bits is stated as the half of it, or cut off.
  expect(ticksOf(96_000)).toEqual([96_000, 2048, 4096]);
  const cutOff = Buffer.from(audioFormat.sampleEntry);
  cutOff.writeUInt16BE(96_000 - 65_536, 32);
  expect(ticksOf(96_000, cutOff)).toEqual([96_000, 2048, 4096]);
  const [lc, implicit, explicit, numbered] = [
    aacEntry(48_000, 0x11, 0x90),
    aacEntry(48_000, 0x13, 0x10),
    aacEntry(48_000, 0x2b, 0x11, 0x88, 0x00),
    aacEntry(48_000, 0x17, 0x80, 0x2e, 0xe0, 0x10),
  ];
  expect(ticksOf(48_000, lc)).toEqual([48_000, 1024, 2048]);
  for (const entry of [implicit, explicit, numbered]) expect(ticksOf(48_000, entry)).toEqual([24_000, 512, 1024]);
});
