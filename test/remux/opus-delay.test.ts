import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { noAdditions } from "../../src/remux/additions.ts";
import { extractAudio } from "../../src/remux/audio-files/extract.ts";
import { box, u16, u32 } from "../../src/remux/mp4/boxes.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { openFolder } from "./mp4-media.ts";
import { audioFormat } from "./mp4-samples.ts";

const folder = openFolder();

const delay = 312;
const frame = 960;
const entry = [new Uint8Array(6), u16(1), u32(0, 0), u16(2, 16, 0, 0), u32(48_000 << 16)];
const specific = box("dOps", Uint8Array.of(0, 2), u16(delay), u32(48_000), u16(0), Uint8Array.of(0));

/** Returns an Ogg file that is made of Opus in MP4 whose packets last so long. */
async function extract(durations: readonly number[], configuration = specific): Promise<Buffer> {
  const path = folder.path("opus.mp4");
  const writer = new Mp4Writer({ path, expectedS: 1 });
  const track = writer.setFormat({ ...audioFormat, sampleEntry: box("Opus", ...entry, configuration) });
  let at = 0;
  for (const duration of durations) {
    writer.write(track, { data: Buffer.alloc(50, 0xfc), dts: at, pts: at, duration, isSync: true });
    at += duration;
  }
  writer.finish();
  const made = folder.path("opus.opus");
  const signal = new AbortController().signal;
  expect(await extractAudio(path, made, noAdditions, { durationS: Infinity, signal })).not.toBeNull();
  return readFileSync(made);
}

/** Returns where its last page ends. */
async function endOf(durations: readonly number[]): Promise<number> {
  const bytes = await extract(durations);
  return Number(bytes.readBigInt64LE(bytes.lastIndexOf("OggS") + 6));
}

it("Opus of an MP4 ends where its packets end, also if the first one lasts only as long as what is presented of it", async () => {
  expect(await endOf([frame, frame, frame])).toBe(3 * frame);
  expect(await endOf([frame - delay, frame, frame])).toBe(3 * frame);
  expect(await endOf([frame - delay, frame, frame - 100])).toBe(3 * frame - 100);
  expect(await endOf([frame - 400])).toBe(frame - 400);
});

it("Opus of an MP4 whose numbers have their last byte first, as the rate shows, has the delay that was meant", async () => {
  const headOf = async (configuration: Uint8Array) => {
    const bytes = await extract([frame, frame], configuration);
    const at = bytes.indexOf("OpusHead");
    return { delay: bytes.readUInt16LE(at + 10), rate: bytes.readUInt32LE(at + 12), gain: bytes.readInt16LE(at + 16) };
  };
  const numbers = (delayBytes: number[], rate: number[], gain: number[]) =>
    box("dOps", Uint8Array.of(0, 2, ...delayBytes, ...rate, ...gain, 0));
  const expected = { delay, rate: 48_000, gain: 256 };
  expect(await headOf(numbers([1, 0x38], [0, 0, 0xbb, 0x80], [1, 0]))).toEqual(expected);
  expect(await headOf(numbers([0x38, 1], [0x80, 0xbb, 0, 0], [0, 1]))).toEqual(expected);
  // A delay of 0.3 s is long, but possible.
  expect(await headOf(numbers([0x38, 1], [0, 0, 0xbb, 0x80], [1, 0]))).toEqual({ ...expected, delay: 0x3801 });
});
