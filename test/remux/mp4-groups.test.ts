import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createMp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import type { Sample, TrackFormat } from "../../src/remux/samples.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { assignedGroups, describedGroups, type Groups, groupsOf, hasBox, withBoxes } from "./group-maker.ts";
import { cut } from "./mp4-cuts.ts";
import { openFolder } from "./mp4-media.ts";
import { audioFormat, fillPattern, fragmentOf, videoFormat } from "./mp4-samples.ts";

const folder = openFolder();

const samplesFrom = (first: number, count: number): Sample[] =>
  Array.from({ length: count }, (_, i) => {
    const dts = (first + i) * 1024;
    return { data: fillPattern(20, first + i), dts, pts: dts, duration: 1024, isSync: first + i === 0 };
  });

/** Returns an MP4 file of these samples. */
function fileOf(format: TrackFormat, samples: readonly Sample[]): Buffer {
  const path = folder.path("source.mp4");
  const sink = new Mp4Writer({ path, expectedS: null });
  const track = sink.setFormat(format);
  for (const sample of samples) sink.write(track, sample);
  sink.finish();
  return readFileSync(path);
}

const inTable = ["moov", "trak", "mdia", "minf", "stbl"];
const inFragment = ["moof", "traf"];
const bothBoxes = (...groups: readonly Groups[]) =>
  groups.flatMap((each) => [describedGroups(each), ...(each.runs ? [assignedGroups(each)] : [])]);

/** Returns the file that is made of these files or segments. */
function remux(...segments: readonly Buffer[]): Buffer {
  const path = folder.path("result.mp4");
  const sink = new Mp4Writer({ path, expectedS: null });
  const demuxer = createMp4Demuxer({ sink, timelines: new Timelines(), kinds: ["video", "audio"] });
  for (const segment of segments) demuxer.read(segment, { timeline: 0, offsetS: null });
  sink.finish();
  return readFileSync(path);
}

/** An init section, which may have descriptions, and two fragments of four samples with these boxes. */
function fragmented(
  inTrack: readonly Uint8Array[],
  boxesAt: (fragment: number) => Uint8Array[],
  format = audioFormat,
): Buffer[] {
  const whole = fileOf(format, samplesFrom(0, 1));
  const track = [...withBoxes(whole, inTable, () => [...inTrack])];
  const init = withoutSamples(Buffer.from(track));
  return [init, ...[0, 1].map((i) => withBoxes(fragmentOf([samplesFrom(4 * i, 4)]), inFragment, () => boxesAt(i)))];
}

/** An init section is the index of a file without its media data; its tables are not read without them. */
function withoutSamples(file: Buffer): Buffer {
  const data = file.indexOf("mdat") - 4;
  return file.subarray(0, data);
}

describe("sample groups of MP4", () => {
  const roll: Groups = { type: "roll", descriptions: [[0xff, 0xff]] };

  it("are kept of a file: which samples of audio need others before them", () => {
    const groups = { ...roll, descriptions: [[0xff, 0xfc]], runs: [2, 0, 6, 1] };
    const source = withBoxes(fileOf(audioFormat, samplesFrom(0, 8)), inTable, () => bothBoxes(groups));
    expect(groupsOf(remux(source))).toEqual({ roll: { entries: ["fffc"], runs: [2, 0, 6, 1] } });
  });

  it("are kept of fragments that describe them themselves, and become one table", () => {
    const segments = fragmented([], () => bothBoxes({ ...roll, runs: [4, 0x10001] }));
    expect(groupsOf(remux(...segments))).toEqual({ roll: { entries: ["ffff"], runs: [8, 1] } });
  });

  it("are kept of fragments whose init section describes them", () => {
    const described = describedGroups({
      ...roll,
      descriptions: [
        [0xff, 0xfe],
        [0xff, 0xff],
      ],
    });
    const assigned = (i: number) => [assignedGroups({ ...roll, runs: i === 0 ? [1, 0, 3, 1] : [4, 2] })];
    const made = remux(...fragmented([described], assigned));
    expect(groupsOf(made)).toEqual({ roll: { entries: ["fffe", "ffff"], runs: [1, 0, 3, 1, 4, 2] } });
  });

  it("are kept where all samples have them by default, but for those of another one or none", () => {
    const described = describedGroups({ ...roll, version: 2, byDefault: 1 });
    const own = [
      describedGroups({ ...roll, version: 2, byDefault: 1, descriptions: [[0xff, 0xfd]] }),
      assignedGroups({ ...roll, runs: [1, 0] }),
    ];
    const made = remux(...fragmented([described], (i) => (i === 0 ? [] : own)));
    expect(groupsOf(made)).toEqual({ roll: { entries: ["ffff", "fffd"], runs: [4, 1, 1, 0, 3, 2] } });
  });

  it("are read from boxes of all versions", () => {
    const lengths = {
      type: "roll",
      descriptions: [
        [0xff, 0xff],
        [0xff, 0xff, 0],
      ],
      runs: [1, 0x10001, 3, 0x10002],
    };
    for (const [groups, entries] of [
      [{ ...roll, version: 0, runs: [1, 0x10001, 3, 0x10001] }, ["ffff"]],
      [lengths, ["ffff", "ffff00"]],
    ] as const) {
      expect(groupsOf(remux(...fragmented([], () => bothBoxes(groups))))["roll"]?.entries).toEqual(entries);
    }
  });

  it("are kept of each type on its own: pictures at which decoding may start", () => {
    const groups: Groups[] = [
      { type: "rap ", descriptions: [[0x82]], runs: [1, 0, 1, 0x10001] },
      { ...roll, descriptions: [[0, 3]], runs: [2, 0, 2, 0x10001] },
      { type: "sync", descriptions: [[5]], runs: [4, 0x10001] },
      { type: "tele", descriptions: [[1]], runs: [4, 0x10001] },
    ];
    expect(groupsOf(remux(...fragmented([], () => bothBoxes(...groups), videoFormat)))).toEqual({
      "rap ": { entries: ["82"], runs: [1, 0, 1, 1, 3, 0, 1, 1, 2, 0] },
      roll: { entries: ["0003"], runs: [2, 0, 2, 1, 2, 0, 2, 1] },
    });
  });

  it.each<[string, Groups[], syncEvery: number, startsAt: number]>([
    ["one packet without them", [], 1, 49],
    ["four of them by `prol`", [{ type: "prol", descriptions: [[0xff, 0xfc]], runs: [100, 1] }], 1, 46],
    ["three for those that come later", [{ ...roll, descriptions: [[0xff, 0xfb]], runs: [52, 0, 48, 1] }], 1, 47],
    ["all from a sync sample", [{ type: "prol", descriptions: [[0xff, 0xff]], runs: [100, 1] }], 12, 48],
    [
      "all from a sync sample that is early enough",
      [{ ...roll, descriptions: [[0xff, 0xfd]], runs: [100, 1] }],
      12,
      36,
    ],
    ["one packet if others come after it", [{ ...roll, descriptions: [[0, 3]], runs: [100, 1] }], 1, 49],
  ])("say what is decoded before a range of audio: %s", async (_, groups, syncEvery, startsAt) => {
    const samples = samplesFrom(0, 100).map((sample, i) => ({ ...sample, isSync: i % syncEvery === 0 }));
    const [source, target] = [folder.path("whole.mp4"), folder.path("part.mp4")];
    const boxes = bothBoxes(...groups);
    const file = withBoxes(fileOf(audioFormat, samples), inTable, () => boxes);
    // The media data are after the index.
    const table = file.indexOf("stco") + 8;
    for (let at = table + 4; at <= table + 4 * file.readUInt32BE(table); at += 4) {
      file.writeUInt32BE(file.readUInt32BE(at) + Buffer.concat(boxes).length, at);
    }
    writeFileSync(source, file);
    const from = (sample: number) => (sample * 1024) / audioFormat.timescale;
    await cut(source, target, [{ startS: from(50), endS: from(60) }]);
    const kept = readFileSync(target, "latin1").match(/sample \d+ /g);
    expect(kept?.[0]).toBe(`sample ${startsAt} `);
  });

  it("of streams that have none make no boxes", () => {
    const made = remux(...fragmented([], () => []));
    for (const type of ["sgpd", "sbgp"]) expect(hasBox(made, inTable, type)).toBe(false);
  });

  it("are left out if they are damaged, and the media are read", () => {
    const whole = assignedGroups({ ...roll, runs: [4, 0x10001] });
    const shorten = (bytes: Uint8Array, length: number) => {
      const short = Buffer.from(bytes.subarray(0, length));
      short.writeUInt32BE(length);
      return short;
    };
    const described = describedGroups(roll);
    for (const boxes of [
      [assignedGroups({ ...roll, runs: [4, 0x10007] }), described],
      [assignedGroups({ ...roll, runs: [4, 0xffffffff] }), described],
      [assignedGroups({ ...roll, runs: [0, 0, 0, 0] }), described],
      ...[8, 12, 16, 18, 20, 24, 25].map((length) => [shorten(described, length), whole]),
      ...[8, 12, 16, 19].map((length) => [described, shorten(whole, length)]),
    ]) {
      const made = remux(...fragmented([], () => boxes));
      expect(groupsOf(made)).toEqual({});
      expect(made.toString("latin1").match(/sample \d /g)?.length).toBeGreaterThan(8);
    }
  });

  it("have a limit, beyond which they are left out", () => {
    const descriptions = Array.from({ length: 300 }, (_, i) => [i >> 8, i & 0xff]);
    const groups = { ...roll, descriptions, runs: [1, 0x10001, 1, 0x10100, 1, 0x10101, 1, 0x1012c] };
    const { roll: found } = groupsOf(remux(...fragmented([], () => bothBoxes(groups))));
    expect(found?.runs).toEqual([1, 1, 1, 2, 2, 0, 1, 1, 1, 2, 2, 0]);
  });
});
