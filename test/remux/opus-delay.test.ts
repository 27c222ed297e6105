import { readFileSync } from "node:fs";
import { afterAll, expect, it } from "vitest";
import { noAdditions } from "../../src/remux/additions.ts";
import { extractAudio } from "../../src/remux/audio-files/extract.ts";
import { box, u16, u32 } from "../../src/remux/mp4/boxes.ts";
import { openMp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { openFolder } from "./mp4-media.ts";
import { audioFormat } from "./mp4-samples.ts";

const folder = openFolder();
afterAll(folder.remove);

const delay = 312;
const frame = 960;
const entry = [new Uint8Array(6), u16(1), u32(0, 0), u16(2, 16, 0, 0), u32(48_000 << 16)];
const specific = box("dOps", Uint8Array.of(0, 2), u16(delay), u32(48_000), u16(0), Uint8Array.of(0));

/** Returns where the last page of an Ogg file ends that is made of Opus in MP4 whose packets last so long. */
async function endOf(durations: readonly number[]): Promise<number> {
  const path = folder.path("opus.mp4");
  const writer = openMp4Writer({ path, expectedS: 1 });
  const track = writer.setFormat({ ...audioFormat, sampleEntry: box("Opus", ...entry, specific) });
  let at = 0;
  for (const duration of durations) {
    writer.write(track, { data: Buffer.alloc(50, 0xfc), dts: at, pts: at, duration, isSync: true });
    at += duration;
  }
  writer.finish();
  const made = folder.path("opus.opus");
  const signal = new AbortController().signal;
  expect(await extractAudio(path, made, noAdditions, { durationS: Infinity, signal })).toBe(true);
  const bytes = readFileSync(made);
  return Number(bytes.readBigInt64LE(bytes.lastIndexOf("OggS") + 6));
}

it("Opus of an MP4 ends where its packets end, also if the first one lasts only as long as what is presented of it", async () => {
  expect(await endOf([frame, frame, frame])).toBe(3 * frame);
  expect(await endOf([frame - delay, frame, frame])).toBe(3 * frame);
  expect(await endOf([frame - delay, frame, frame - 100])).toBe(3 * frame - 100);
  expect(await endOf([frame - 400])).toBe(frame - 400);
});
