import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ascii, type Box, box, boxesIn, childrenOf, fullBox, u32 } from "../../src/remux/mp4/boxes.ts";
import { createMp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import { readMp4Summary } from "../../src/remux/mp4/read/summary.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import type { Edit, Sample, TrackFormat } from "../../src/remux/samples.ts";
import { readSampleLists } from "../../src/remux/mp4/read/sample-list.ts";
import { openFile, readAt } from "../../src/remux/open-file.ts";
import { cut } from "./mp4-cuts.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { audioInput, inspectFile, ffmpeg, missing, openFolder, remux, start, videoInput } from "./mp4-media.ts";
import { readRendition } from "../media/rendition.ts";
import { audioFormat, createRecorder, fillPattern, indexOf, videoFormat } from "./mp4-samples.ts";

const folder = openFolder();
const path = folder.path("a.mp4");

/** 25 frames a second. */
const frameAt = (number: number): Sample => ({
  data: fillPattern(20, number),
  dts: number * 1000,
  pts: number * 1000,
  duration: 1000,
  isSync: true,
});

/** Writes four seconds of video in these formats, one after the other. */
function write(formats: readonly TrackFormat[], delay = 0) {
  const writer = new Mp4Writer({ path, expectedS: 4 });
  const track = writer.setFormat(formats[0]!);
  for (let i = 0; i < 100; i++) {
    writer.setFormat(formats[Math.floor((i * formats.length) / 100)]!, track);
    writer.write(track, { ...frameAt(i), pts: i * 1000 + delay });
  }
  return writer.finish();
}

/** Returns an init section whose audio has an edit list with these rows. */
function withAudioEdits(init: Uint8Array, rows: readonly number[][]): Buffer {
  const copy = (at: Box) => init.subarray(at.start, at.end);
  const isAudio = (trak: Box) => Buffer.from(copy(trak)).includes("soun");
  const edits = box("edts", fullBox("elst", 0, 0, u32(rows.length, ...rows.flat())));
  const changed = (parent: Box): Uint8Array => {
    if (parent.type === "moov") return box("moov", ...childrenOf(init, parent).map(changed));
    if (parent.type !== "trak" || !isAudio(parent)) return copy(parent);
    const children = childrenOf(init, parent).filter(({ type }) => type !== "edts");
    return box("trak", ...children.map(copy), edits);
  };
  return Buffer.concat([...boxesIn(init)].map(changed));
}

/** Adds the tag in which iTunes says which samples of audio are presented; the index moves to the end. */
function addGapless(file: string, around: readonly number[], presented: number): void {
  const bytes = readFileSync(file);
  const moov = [...boxesIn(bytes)].find(({ type }) => type === "moov")!;
  const kept = childrenOf(bytes, moov).filter(({ type }) => type !== "udta");
  const digits = (number: number, length: number) => number.toString(16).toUpperCase().padStart(length, "0");
  const text = ["", digits(0, 8), ...around.map((samples) => digits(samples, 8)), digits(presented, 16), digits(0, 8)];
  const item = [fullBox("mean", 0, 0, ascii("com.apple.iTunes")), fullBox("name", 0, 0, ascii("iTunSMPB"))];
  const list = box("ilst", box("----", ...item, box("data", u32(1, 0), ascii(text.join(" ")))));
  const copies = kept.map(({ start: from, end }) => bytes.subarray(from, end));
  const index = box("moov", ...copies, box("udta", fullBox("meta", 0, 0, list)));
  bytes.write("free", moov.start + 4, "latin1");
  writeFileSync(file, Buffer.concat([bytes, index]));
}

/** Returns the formats that a demuxer reads from the file. */
function formatsIn(file: string): TrackFormat[] {
  const formats: TrackFormat[] = [];
  const sink = { setFormat: (format: TrackFormat) => formats.push(format) - 1, write: () => {} };
  const options = { sink, timelines: new Timelines(), kinds: ["video", "audio"] as const };
  const demuxer = createMp4Demuxer(options);
  for (const _ of demuxer.readFile({ path: file }, start));
  return formats;
}

function summaryOf(file: string) {
  const steps = readMp4Summary(file);
  for (let next = steps.next(); ; next = steps.next()) if (next.done === true) return next.value;
}

/** Returns the numbers of the frames that the edits of a file present, in order. */
function shownIn(target: string): number[] {
  using file = openFile(target);
  const [list] = readSampleLists(file);
  const frames = Array.from({ length: list!.length }, (_, i) => {
    const { pts, offset, size } = list!.at(i);
    return { pts, data: readAt(file, offset, size) };
  });
  const shown = list!.track.formats[0]!.edits!.flatMap(({ mediaTicks, durationTicks }) => {
    return frames.filter(({ pts }) => pts >= mediaTicks && pts < mediaTicks + durationTicks);
  });
  return shown.map(({ data }) => Number(data.toString("latin1").split(" ")[1]));
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

const edit = (mediaTicks: number, durationTicks: number, emptyTicks = 0): Edit => ({
  mediaTicks,
  durationTicks,
  emptyTicks,
});

describe("the edit list of a track", () => {
  it("is kept: a cut start, a cut end, and what lies between two parts", () => {
    const edits = [edit(10_000, 25_000), edit(50_000, 20_000, 5_000)];
    const file = write([{ ...videoFormat, edits }]);
    expect(file.durationS).toBe(2);
    expect(summaryOf(path)).toMatchObject({ durationS: 2 });
    expect(formatsIn(path)[0]?.edits).toEqual(edits);
    const again = folder.path("again.mp4");
    remux([{ segments: [path] }], again);
    expect(formatsIn(again)[0]?.edits).toEqual(edits);
  });

  it("is kept together with the composition offsets that it counts with", () => {
    const edits = [edit(12_500, 25_000), edit(50_500, 20_000)];
    write([{ ...videoFormat, edits }], 2_000);
    expect(formatsIn(path)[0]?.edits).toEqual(edits);
  });

  it("shows nothing of the frame after each part, and has no gaps between parts, if ticks of the movie are longer", () => {
    const frame = 333_667;
    const edits = [170, 3, 17, 40].map((frames, i) => edit(i * 100 * frame, frames * frame));
    const writer = new Mp4Writer({ path, expectedS: 16 });
    const track = writer.setFormat({ ...videoFormat, timescale: 10_000_000, edits });
    for (let i = 0; i < 480; i++)
      writer.write(track, { ...frameAt(i), dts: i * frame, pts: i * frame, duration: frame });
    writer.finish();
    const read = formatsIn(path)[0]?.edits ?? [];
    const longer = read.map(({ durationTicks }, i) => durationTicks - edits[i]!.durationTicks);
    expect(longer).toHaveLength(4);
    expect(Math.max(...longer)).toBeLessThanOrEqual(0);
    expect(read.map(({ emptyTicks }) => emptyTicks)).toEqual([0, 0, 0, 0]);
  });

  it("may go back: a cut presents its parts in that order", async () => {
    write([{ ...videoFormat, edits: [edit(50_000, 25_000), edit(10_000, 20_000)] }]);
    const target = folder.path("back.mp4");
    await cut(path, target, [{ startS: 0, endS: Infinity }]);
    expect(shownIn(target)).toEqual([...range(50, 75), ...range(10, 30)]);
    await cut(path, target, [{ startS: 0.4, endS: 1.4 }]);
    expect(shownIn(target)).toEqual([...range(60, 75), ...range(10, 20)]);
  });

  it("is in samples if a cut makes one for audio, whatever its source counts in", async () => {
    const edits = [edit(3_840, 1_536_000)];
    const writer = new Mp4Writer({ path, expectedS: 20 });
    const track = writer.setFormat({ ...audioFormat, timescale: 90_000, edits });
    for (let i = 0; i < 900; i++) {
      writer.write(track, { ...frameAt(i), dts: i * 1920, pts: i * 1920, duration: 1920 });
    }
    writer.finish();
    const target = folder.path("samples.mp4");
    await cut(path, target, [{ startS: 3, endS: 7 }]);
    const [format] = formatsIn(target);
    // 3 s after the start of the edit are 142.625 packets; one more is decoded before.
    expect(format).toMatchObject({ timescale: 48_000, edits: [edit(1024 + 640, 192_000)] });
    expect(shownIn(target)).toEqual(range(143, 331));
  });

  it("is what iTunes says of the audio of a file without one, if that lasts as long", () => {
    const packets = 50;
    const readEdits = (before: number, presented: number, after: number) => {
      const writer = new Mp4Writer({ path, expectedS: 1 });
      const track = writer.setFormat({ ...audioFormat, timescale: 48_000 });
      for (let i = 0; i < packets; i++) {
        writer.write(track, { ...frameAt(i), dts: i * 1024, pts: i * 1024, duration: 1024 });
      }
      writer.finish();
      addGapless(path, [before, after], presented);
      return formatsIn(path)[0]!.edits;
    };
    const presented = packets * 1024 - 2048 - 768;
    expect(readEdits(2048, presented, 768)).toEqual([edit(2048, presented)]);
    expect(readEdits(2048, presented - 1024, 768)).toBeUndefined();
  });

  it("may have tens of thousands of entries", () => {
    const edits = Array.from({ length: 60_000 }, () => edit(0, 1000));
    expect(write([{ ...videoFormat, edits }]).durationS).toBeGreaterThan(0);
  });

  /** Sets the rates of the edits of the file in the order in which they are there. */
  function setRates(...rates: readonly number[]): void {
    const bytes = readFileSync(path);
    const at = bytes.indexOf("elst") + 12;
    for (const [i, rate] of rates.entries()) bytes.writeUInt32BE(rate, at + 20 * i + 16);
    writeFileSync(path, bytes);
  }

  it.each([
    ["keeps a picture standing", [0x10000, 0], "at 0 times"],
    ["plays media faster", [0x20000, 0x10000], "at 2 times"],
    ["plays media backwards", [0x10000, 0xffff0000], "at -1 times"],
  ])(
    "is refused where it %s, as no other file can be made of it; the file itself is read",
    async (_what, rates, rule) => {
      write([{ ...videoFormat, edits: [edit(10_000, 25_000), edit(50_000, 20_000)] }]);
      setRates(...rates);
      const refused = expect.objectContaining({ code: "format_unavailable", message: expect.stringContaining(rule) });
      expect(() => formatsIn(path)).toThrow(refused);
      await expect(cut(path, folder.path("rate.mp4"), [{ startS: 0, endS: 1 }])).rejects.toEqual(refused);
      expect(summaryOf(path)).toMatchObject({ durationS: 1.8 });
    },
  );

  it.each([
    ["0 in all edits", [0, 0]],
    ["1 instead of 1.0", [1, 1]],
  ])("plays media as they are if its writer has put %s", (_what, rates) => {
    const edits = [edit(10_000, 25_000), edit(50_000, 20_000)];
    write([{ ...videoFormat, edits }]);
    setRates(...rates);
    expect(formatsIn(path)[0]?.edits).toEqual(edits);
  });

  it("is not written if it leaves out nothing", () => {
    write([{ ...videoFormat, edits: [edit(0, 200_000)] }]);
    expect(indexOf(path).includes("elst")).toBe(false);
  });

  it("cuts only the start of a track that continues in another format", () => {
    const second = { ...videoFormat, sampleEntry: Buffer.from(videoFormat.sampleEntry) };
    second.sampleEntry[40] = 1;
    const file = write([{ ...videoFormat, edits: [edit(10_000, 25_000)] }, second]);
    expect(file.durationS).toBe(3.6);
  });

  it.each([
    ["the last frame, if the range lies within it", [[3.985, 4]], [99_000]],
    [
      "the last frame once, if two ranges lie within it",
      [
        [3.97, 3.984],
        [3.985, 3.99],
      ],
      [99_000],
    ],
    [
      "a frame once, if two ranges lie within it",
      [
        [1.001, 1.002],
        [1.003, 1.004],
      ],
      [25_000],
    ],
    [
      "the frames of two ranges that touch within one",
      [
        [1, 1.03],
        [1.03, 1.09],
      ],
      [25_000, 26_000],
    ],
  ] as const)("of a cut presents %s", async (_, ranges, frames) => {
    write([videoFormat]);
    const target = folder.path("part.mp4");
    const made = await cut(
      path,
      target,
      ranges.map(([startS, endS]) => ({ startS, endS })),
    );
    const [format] = formatsIn(target);
    expect(made?.durationS).toBeCloseTo(frames.length * 0.04, 6);
    expect(made?.kept.map(({ startS }) => Math.round(startS * 25_000))).toEqual(frames);
    expect(format?.edits?.reduce((sum, { durationTicks }) => sum + durationTicks, 0) ?? 1000).toBe(
      frames.length * 1000,
    );
  });

  it.each([
    ["the first whole frame", videoFormat.timescale, 10_500, 0.02],
    ["a part of one that stands still", 1000, 1500, 0],
  ])("of a cut counts from %s after the start of an edit", async (_, timescale, mediaTicks, startS) => {
    write([{ ...videoFormat, timescale, edits: [edit(mediaTicks, Infinity)] }]);
    const made = await cut(path, folder.path("part.mp4"), [{ startS: 0, endS: 0.08 }]);
    expect(made?.kept[0]?.startS).toBeCloseTo(startS, 6);
  });

  it("moves nothing: audio stays where it is relative to the cut video", () => {
    const writer = new Mp4Writer({ path, expectedS: 4 });
    const video = writer.setFormat({ ...videoFormat, edits: [edit(10_000, Infinity)] });
    const audio = writer.setFormat({ ...audioFormat, edits: [edit(1024, Infinity)] });
    // Presentation times are those after the edit.
    for (let i = 0; i < 50; i++) {
      writer.write(video, { ...frameAt(i), dts: (i - 10) * 1000, pts: (i - 10) * 1000 });
    }
    for (let i = 0; i < 80; i++) {
      const dts = (i - 1) * 1024;
      writer.write(audio, { ...frameAt(i), dts, pts: dts, duration: 1024 });
    }
    writer.finish();
    const [first, second] = formatsIn(path);
    expect(first?.edits).toMatchObject([{ mediaTicks: 10_000, emptyTicks: 0 }]);
    expect(second?.edits).toMatchObject([{ mediaTicks: 1024, emptyTicks: 0 }]);
  });

  for (const [what, videoStart, audioStart, hiddenTicks] of [
    ["audio shortly before time 0, which is priming", 0, -1024, 1024],
    ["nothing of audio before time 0 if there is video, too", -13, -24_960, 0],
    ["nothing of audio long before time 0", 0, -24_576, 0],
  ] as const) {
    it(`leaves out ${what}`, () => {
      const writer = new Mp4Writer({ path, expectedS: 4 });
      const video = writer.setFormat(videoFormat);
      const audio = writer.setFormat(audioFormat);
      for (let i = 0; i < 50; i++) {
        writer.write(video, { ...frameAt(i), dts: (videoStart + i) * 1000, pts: (videoStart + i) * 1000 });
        const at = audioStart + i * 1024;
        writer.write(audio, { ...frameAt(i), dts: at, pts: at, duration: 1024 });
      }
      writer.finish();
      expect(formatsIn(path)[1]?.edits?.[0]?.mediaTicks ?? 0).toBe(hiddenTicks);
    });
  }

  it("leaves out the priming that the samples state, wherever they begin", () => {
    const writer = new Mp4Writer({ path, expectedS: 4 });
    const audio = writer.setFormat(audioFormat);
    for (let i = 0; i < 50; i++) {
      const at = i * 1024 - 30_000;
      const primingTicks = [1024, 288][i] ?? 0;
      writer.write(audio, { ...frameAt(i), dts: at, pts: at, duration: 1024, primingTicks });
    }
    writer.finish();
    expect(formatsIn(path)[0]?.edits?.[0]?.mediaTicks).toBe(1312);
  });

  it("leaves out the priming before the first edit of fragments, also if nothing is presented before that", () => {
    const { init, pieces } = readRendition("muxed.m4s");
    const primingOf = (...rows: number[][]) => {
      const { sink, tracks } = createRecorder();
      const demuxer = createMp4Demuxer({ sink, timelines: new Timelines(), kinds: ["audio"] });
      demuxer.read(withAudioEdits(init!, rows), start);
      demuxer.read(pieces[0]!.data, start);
      return tracks[0]!.slice(0, 3).map(({ primingTicks = 0, shownS }) => [primingTicks, Math.round(shownS * 1000)]);
    };
    const [mediaTime, noMedia, whole] = [1500, 0xffffffff, 0x10000];
    const [at0] = primingOf([0, 0, whole]);
    expect(at0![0]).toBe(0);
    const direct = primingOf([0, mediaTime, whole]);
    const delayed = primingOf([500, noMedia, whole], [0, mediaTime, whole]);
    expect(direct.map(([ticks]) => ticks)).toEqual([1024, 476, 0]);
    expect(delayed).toEqual(direct.map(([ticks, ms]) => [ticks, ms! + 500]));
  });

  it("with more entries than a file needs is refused", () => {
    write([{ ...videoFormat, edits: [edit(10_000, 25_000)] }]);
    const bytes = readFileSync(path);
    bytes.set(u32(70_000), bytes.indexOf("elst") + 8);
    writeFileSync(path, bytes);
    const error = { code: "upstream_invalid", message: expect.stringContaining("70000 edits") };
    expect(() => formatsIn(path)).toThrow(expect.objectContaining(error));
  });

  it.skipIf(missing("libx264", "aac"))("shows the frames that ffmpeg shows of the source", async () => {
    const [whole, part, target] = ["whole.mp4", "cut.mp4", "target.mp4"].map(folder.path) as [string, string, string];
    const codecs = "-c:v libx264 -preset ultrafast -bf 2 -g 50 -c:a aac";
    ffmpeg(`${videoInput(4)} ${audioInput(4)} ${codecs} ${whole}`);
    ffmpeg(`-ss 2.6 -i ${whole} -t 1 -c copy ${part}`);
    remux([{ segments: [part] }], target);
    const [expected, actual] = await Promise.all([inspectFile(part), inspectFile(target)]);
    expect(actual.videoMd5).toBe(expected.videoMd5);
    expect(Math.abs(actual.durationS - expected.durationS)).toBeLessThan(0.002);
    const heard = (file: string) => ffmpeg(`-i ${file} -map a -f md5 -`);
    expect(heard(target)).toBe(heard(part));
  });
});

describe("decode times of 32 bits", () => {
  const { init, pieces } = readRendition("video.m4s");
  const stated = { timeline: 0, offsetS: 0 };
  /** Returns the fragments with times that count from `from` on, and what they have at `at` instead. */
  const timesOf = (from: number, at?: number) => {
    const { sink, tracks } = createRecorder();
    const demuxer = createMp4Demuxer({ sink, timelines: new Timelines(), kinds: ["video"] });
    demuxer.read(init!, stated);
    for (const [i, { data }] of pieces.entries()) {
      const bytes = Buffer.from(data);
      const tfdt = bytes.indexOf("tfdt") + 4;
      const time = Number(bytes[tfdt] === 1 ? bytes.readBigUInt64BE(tfdt + 4) : bytes.readUInt32BE(tfdt + 4));
      const ticks = (i === 1 && at !== undefined ? at : from + time) % 2 ** 32;
      bytes.writeUInt8(0, tfdt);
      bytes.writeUInt32BE(ticks, tfdt + 4);
      demuxer.read(bytes, stated);
    }
    const firstS = from / (tracks[0]![0]!.duration * 25);
    return tracks[0]!.map(({ shownS }) => Number((shownS - firstS).toFixed(6)));
  };

  it("go on where they wrap", () => {
    expect(timesOf(2 ** 32 - 1_000)).toEqual(timesOf(0));
  });

  it("begin anew where they fall back before that", () => {
    expect(Math.min(...timesOf(2 ** 31 + 2 ** 30, 0))).toBeLessThan(-60);
  });
});

describe("the matrix of a track", () => {
  const turned = [0, 0x10000, 0, -0x10000, 0, 0, 36 << 16, 0, 0x40000000];

  it("is kept, and its quarter turn exchanges width and height", () => {
    write([{ ...videoFormat, matrix: turned }]);
    expect(summaryOf(path)).toMatchObject({ width: 36, height: 64 });
    const again = folder.path("again.mp4");
    remux([{ segments: [path] }], again);
    expect(formatsIn(again)[0]?.matrix).toEqual(turned);
  });

  it("is applied before that of the movie", () => {
    write([{ ...videoFormat, matrix: [-0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000] }]);
    const bytes = readFileSync(path);
    const movie = bytes.indexOf("mvhd") + 4 + 36;
    bytes.set(u32(...turned), movie);
    writeFileSync(path, bytes);
    const [format] = formatsIn(path);
    const expected = [0, -0x10000, 0, -0x10000, 0, 0, 36 << 16, 0, 0x40000000];
    expect(format?.matrix?.map((value) => value + 0)).toEqual(expected);
  });
});

describe("a cut", () => {
  it("keeps the name and the language of a track, with its region", async () => {
    write([{ ...videoFormat, language: "pt-BR", name: "Câmara 2" }]);
    const target = folder.path("cut.mp4");
    await cut(path, target, [{ startS: 1, endS: 2 }]);
    expect(formatsIn(target)).toMatchObject([{ language: "pt-BR" }]);
    expect(readFileSync(target).includes("Câmara 2\0")).toBe(true);
  });
});

describe("the data reference of a track", () => {
  /** Has the track's reference lead to this place, or state its flags only. */
  function refer(flags: number, place: string, after = ""): void {
    const bytes = readFileSync(path);
    const changed = (parent: Box): Uint8Array => {
      const own = ["moov", "trak", "mdia", "minf", "dinf"].includes(parent.type);
      if (parent.type === "dref") {
        return fullBox("dref", 0, 0, u32(1), fullBox("url ", 0, flags, ascii(place)), ascii(after));
      }
      return own
        ? box(parent.type, ...childrenOf(bytes, parent).map(changed))
        : bytes.subarray(parent.start, parent.end);
    };
    const boxes = [...boxesIn(bytes)];
    const [index, others] = [boxes.filter(({ type }) => type === "moov"), boxes.filter(({ type }) => type !== "moov")];
    const before = others.map(({ start: from, end }) => Buffer.from(bytes.subarray(from, end)));
    const gap =
      index[0]!.start < others.at(-1)!.start ? [box("free", Buffer.alloc(index[0]!.end - index[0]!.start - 8))] : [];
    const [first, ...rest] = before;
    writeFileSync(path, Buffer.concat([first!, ...gap, ...rest, ...index.map(changed)]));
  }

  it("is refused if it leads to another file: its samples are not in this one", () => {
    write([videoFormat]);
    refer(0, "other.mov\0");
    const refused = expect.objectContaining({ code: "format_unavailable", message: expect.stringContaining('"url "') });
    expect(() => formatsIn(path)).toThrow(refused);
    expect(() => summaryOf(path)).toThrow(refused);
  });

  it.each([
    ["says that they are in it, whatever else it says", 1, "other.mov\0"],
    ["says nothing", 0, ""],
    ["leads to an empty place", 0, "\0"],
    ["leads to an empty place with bytes to spare", 0, "\0\0\0\0"],
    ["is followed by bytes that are no reference", 1, "", "\0\0\0\0"],
    ["is followed by a reference that is cut off", 1, "", "\0\0\0\x20url "],
  ])("is taken for the file itself if it %s", (_what, flags, place, after = "") => {
    write([videoFormat]);
    refer(flags, place, after);
    expect(formatsIn(path)).toHaveLength(1);
  });
});
