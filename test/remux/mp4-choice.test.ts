import { readFileSync, writeFileSync } from "node:fs";
import { expect, it, vi } from "vitest";
import { readSampleLists } from "../../src/remux/mp4/read/sample-list.ts";
import { openFile } from "../../src/remux/open-file.ts";
import { box, boxesIn, firstBox, u32 } from "../../src/remux/mp4/boxes.ts";
import { readInit } from "../../src/remux/mp4/read/init.ts";
import type { FoundTracks } from "../../src/remux/samples.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { createMp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { openFolder, start } from "./mp4-media.ts";
import { audioFormat, fillPattern, indexOf, videoFormat } from "./mp4-samples.ts";
import { createRecorder } from "./ts-recorder.ts";

const folder = openFolder();
const path = folder.path("two.mp4");

/** Writes a file with two audio tracks, the samples of which have 51 and 61, 52 and 62 bytes; those in `disabled` are not enabled. */
function write(...disabled: readonly number[]): Buffer {
  const writer = new Mp4Writer({ path, expectedS: 1 });
  const tracks = ["en", "de"].map((language) => writer.setFormat({ ...audioFormat, language }));
  for (const [i, track] of tracks.entries()) {
    for (const [at, bytes] of [51, 61].entries()) {
      const dts = 1024 * at;
      writer.write(track, { data: fillPattern(bytes + i, i), dts, pts: dts, duration: 1024, isSync: true });
    }
  }
  writer.finish();
  const bytes = readFileSync(path);
  const headers = [...bytes.toString("latin1").matchAll(/tkhd/g)].map(({ index }) => index + 4);
  expect(headers).toHaveLength(2);
  for (const [track, at] of headers.entries()) bytes[at + 3] = disabled.includes(track) ? 0 : 3;
  writeFileSync(path, bytes);
  return bytes;
}

/** Returns the sizes of the samples that are read. */
function read(): number[] {
  const recorder = createRecorder();
  const demuxer = createMp4Demuxer({ sink: recorder, timelines: new Timelines(), kinds: ["video", "audio"] });
  for (const _ of demuxer.readFile({ path }, start));
  return recorder.track("audio").samples.map(({ data }) => data.length);
}

it("the first audio track of an MP4 that is enabled is read, or the first one if none is", () => {
  write();
  expect(read()).toEqual([51, 61]);
  write(0);
  expect(read()).toEqual([52, 62]);
  write(0, 1);
  expect(read()).toEqual([51, 61]);
});

it("an audio track of an MP4 that has no samples is read only if no other has any", () => {
  const bytes = write();
  const counts = [...bytes.toString("latin1").matchAll(/stsz/g)].map(({ index }) => index + 12);
  bytes.writeUInt32BE(0, counts[0]);
  writeFileSync(path, bytes);
  expect(read()).toEqual([52, 62]);
  bytes.writeUInt32BE(0, counts[1]);
  writeFileSync(path, bytes);
  expect(read()).toEqual([]);
});

it("an audio track of an MP4 of which no sample has a byte is not read if another has some", () => {
  const bytes = write();
  const sizes = bytes.indexOf("stsz") + 16;
  bytes.fill(0, sizes, sizes + 8);
  writeFileSync(path, bytes);
  expect(read()).toEqual([52, 62]);
});

it("a tag after the last box of an MP4 is left out, but not a box that is cut off", () => {
  const bytes = write();
  writeFileSync(path, Buffer.concat([bytes, Buffer.from(`TAG${" ".repeat(125)}`)]));
  expect(read()).toEqual([51, 61]);
  using file = openFile(path);
  expect(readSampleLists(file)).toHaveLength(2);
  writeFileSync(path, Buffer.concat([bytes, Buffer.from("\0\0\x01\0mdat")]));
  expect(read).toThrow('the box "mdat" has a size of 256 bytes');
});

it("further video tracks of an MP4 are counted, but not those with the pictures of chapters", () => {
  const writer = new Mp4Writer({ path, expectedS: 1 });
  for (let track = 0; track < 3; track++) {
    const number = writer.setFormat({ ...videoFormat, userData: box("udta", box("void", new Uint8Array(4))) });
    writer.write(number, { data: fillPattern(51, track), dts: 0, pts: 0, duration: 1024, isSync: true });
  }
  writer.finish();
  const bytes = readFileSync(path);
  const left: number[] = [];
  const onTracks = ({ left: { video } }: FoundTracks) => void left.push(video);
  const options = { sink: createRecorder(), timelines: new Timelines(), kinds: ["video"] as const, onTracks };
  for (const _ of createMp4Demuxer(options).readFile({ path }, start));
  // The first track refers to the third one.
  bytes.set(box("tref", box("chap", u32(3))), bytes.indexOf("udta") - 4);
  writeFileSync(path, bytes);
  for (const _ of createMp4Demuxer(options).readFile({ path }, start));
  expect(left).toEqual([2, 1]);
});

it("video of an MP4 that is disabled, or has the pictures of chapters, is taken only if no other is there", () => {
  /** Returns the sizes of the first samples of a file, read and cut; its second track has chapters in that with this id. */
  const firstSizes = (flags: number, chapters: number) => {
    const writer = new Mp4Writer({ path, expectedS: 1 });
    for (let track = 0; track < 2; track++) {
      const number = writer.setFormat({ ...videoFormat, userData: box("udta", box("void", new Uint8Array(12))) });
      writer.write(number, { data: fillPattern(51 + track, track), dts: 0, pts: 0, duration: 1024, isSync: true });
    }
    writer.finish();
    const bytes = readFileSync(path);
    bytes[bytes.indexOf("tkhd") + 7] = flags;
    const at = bytes.lastIndexOf("udta");
    // The reference takes the place of the box around it.
    bytes.set(box("tref", box("chap", u32(chapters)), box("free")), at - 4);
    writeFileSync(path, bytes);
    const recorder = createRecorder();
    const demuxer = createMp4Demuxer({ sink: recorder, timelines: new Timelines(), kinds: ["video"] });
    for (const _ of demuxer.readFile({ path }, start));
    using file = openFile(path);
    return [recorder.track("video").samples[0]!.data.length, ...readSampleLists(file).map((list) => list.size(0))];
  };
  expect(firstSizes(3, 9)).toEqual([51, 51, 52]);
  expect(firstSizes(2, 9)).toEqual([52, 52, 51]);
  expect(firstSizes(3, 1)).toEqual([52, 52]);
  expect(firstSizes(2, 1)).toEqual([52, 52]);
});

it("an audio track of an MP4 that is a description or a commentary by its role is read if no other is there", () => {
  const kind = (role: string) => box("kind", u32(0), Buffer.from(`urn:mpeg:dash:role:2011\0${role}\0`));
  const sizes = (...roles: string[]) => {
    const writer = new Mp4Writer({ path, expectedS: 1 });
    for (const [i, role] of roles.entries()) {
      const track = writer.setFormat({ ...audioFormat, userData: box("udta", kind(role)) });
      writer.write(track, { data: fillPattern(51 + i, i), dts: 0, pts: 0, duration: 1024, isSync: true });
    }
    writer.finish();
    const header = readFileSync(path);
    // The writer enables the first one only.
    for (const { index } of header.toString("latin1").matchAll(/tkhd/g)) header[index + 7] = 3;
    writeFileSync(path, header);
    using file = openFile(path);
    return [...read(), ...readSampleLists(file).map((list) => list.size(0))];
  };
  expect(sizes("description", "main")).toEqual([52, 52, 51]);
  expect(sizes("commentary", "dub")).toEqual([52, 52, 51]);
  expect(sizes("main", "description")).toEqual([51, 51, 52]);
  expect(sizes("description", "commentary")).toEqual([51, 51, 52]);
});

it("the sizes of many tracks, some of which are disabled, are looked through a few times, not for each comparison", () => {
  const writer = new Mp4Writer({ path, expectedS: 1 });
  const written = writer.setFormat(audioFormat);
  const sizes = [1, 2, 3, 4, 5, 6, 7].map((bytes) => ({ data: fillPattern(bytes, 0), duration: 1024, isSync: true }));
  for (const [at, sample] of sizes.entries()) writer.write(written, { ...sample, dts: 1024 * at, pts: 1024 * at });
  writer.finish();
  const index = indexOf(path);
  const moov = [...boxesIn(index)].find(({ type }) => type === "moov")!;
  const parts = [...boxesIn(index, moov.body, moov.end)].map(({ type, start: from, end }) => ({
    type,
    bytes: index.subarray(from, end),
  }));
  const tracks = 200;
  const copies = Array.from({ length: tracks }, (_, number) => {
    const copy = Buffer.from(parts.find(({ type }) => type === "trak")!.bytes);
    copy[copy.indexOf("tkhd") + 7] = (number * 7) % 13 < 6 ? 3 : 0;
    return copy;
  });
  const bytes = box("moov", ...parts.filter(({ type }) => type !== "trak").map((part) => part.bytes), ...copies);
  const taken = vi.spyOn(bytes, "subarray");
  expect(readInit(bytes, firstBox(bytes), { kinds: ["audio"] })).toHaveLength(1);
  const looks = taken.mock.calls.filter(([from = 0, to = 0]) => to - from === 4 * sizes.length);
  expect(looks.length).toBeGreaterThanOrEqual(tracks);
  expect(looks.length).toBeLessThanOrEqual(3 * tracks);
});
