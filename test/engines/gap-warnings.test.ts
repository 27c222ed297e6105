import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { findFileWarnings } from "../../src/engines/native/output/file-warnings.ts";
import { CountingSink } from "../../src/engines/native/output/counting-sink.ts";
import { FetchStats } from "../../src/engines/native/sources/fetch-stats.ts";
import { openMp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { resource } from "../media/resources.ts";
import { openFolder } from "../remux/mp4-media.ts";
import { audioFormat, fillPattern, videoFormat } from "../remux/mp4-samples.ts";

const folder = openFolder();
afterAll(folder.remove);
const engine = createNativeEngine({ allowNetworks: "127.0.0.1/32" });
afterAll(() => engine.close());

/** Returns the codes of the warnings of a file with 4 s of video, a gap of 3 s, and 4 s more. */
function warningsOf(listedS: readonly number[]): string[] {
  const path = join(folder.path("."), "gap.mp4");
  const writer = openMp4Writer({ path, expectedS: 11 });
  const sink = new CountingSink(writer);
  const track = sink.setFormat(videoFormat);
  for (let i = 0; i < 200; i++) {
    const dts = (i < 100 ? i : i + 75) * 1000;
    sink.write(track, { data: fillPattern(20, i), dts, pts: dts, duration: 1000, isSync: true });
  }
  const { durationS } = writer.finish();
  const stats = new FetchStats();
  for (const seconds of listedS) stats.addSegment(seconds);
  const tracks = sink.tracks().map((stat) => ({ ...stat, source: "main" as const }));
  const written = { tracks, drops: { video: 0, audio: 0 }, left: 0, originS: 0, shortEnds: [] };
  const file = { path, durationS, written, listedKinds: ["video" as const] };
  return findFileWarnings(new Map([["main", stats]]), file).map(({ code }) => code);
}

it("a gap between the segments that a manifest lists has a warning, and the sum of what they last has none", () => {
  expect(warningsOf([2, 2, 2, 2])).toEqual(["gap"]);
});

it("a gap that the manifest lists as media has a warning, but the duration has none", () => {
  expect(warningsOf([2, 2, 3, 2, 2])).toEqual(["gap"]);
});

it("media that last otherwise have both", () => {
  expect(warningsOf(Array.from({ length: 8 }, () => 2.1))).toEqual(["gap", "duration_differs"]);
});

it.each([
  [false, ["gap"]],
  [true, []],
])("tracks that end a segment of 2 s apart have a gap, but not in a recording: %s", (isLive, expected) => {
  const path = join(folder.path("."), "apart.mp4");
  const writer = openMp4Writer({ path, expectedS: 10 });
  const counts = [videoFormat, audioFormat].map((format, index) => {
    const sink = new CountingSink(writer);
    const track = sink.setFormat(format);
    const step = format.timescale / 25;
    for (let i = 0; i < 250 - 50 * index; i++) {
      const dts = i * step;
      sink.write(track, { data: fillPattern(20, i), dts, pts: dts, duration: step, isSync: true });
    }
    return sink;
  });
  const { durationS } = writer.finish();
  const stats = new FetchStats();
  stats.isLive = isLive;
  for (let i = 0; i < 5; i++) stats.addSegment(2);
  const tracks = counts.flatMap((sink) => sink.tracks().map((stat) => ({ ...stat, source: "main" as const })));
  const written = { tracks, drops: { video: 0, audio: 0 }, left: 0, originS: 0, shortEnds: [] };
  const file = { path, durationS, written, listedKinds: ["video" as const] };
  expect(findFileWarnings(new Map([["main", stats]]), file).map(({ code }) => code)).toEqual(expected);
});

/** A file with 4 s of video and 10 s of audio. */
function shortVideo(): Buffer {
  const path = join(folder.path("."), "short-video.mp4");
  const writer = openMp4Writer({ path, expectedS: 10 });
  for (const [format, count] of [
    [videoFormat, 100],
    [audioFormat, 250],
  ] as const) {
    const track = writer.setFormat(format);
    const step = format.timescale / 25;
    for (let i = 0; i < count; i++) {
      const dts = i * step;
      writer.write(track, { data: fillPattern(20, i), dts, pts: dts, duration: step, isSync: true });
    }
  }
  writer.finish();
  return readFileSync(path);
}

it.each([
  ["after it", [{ startS: 6, endS: 9 }], "no video from 6.0 to 9.0 s of the whole"],
  ["shortly after it", [{ startS: 6, endS: 6.4 }], "no video from 6.0 to 6.4 s of the whole"],
  ["in it and on after it", [{ startS: 1, endS: 8 }], "no video from 4.0 to 8.0 s of the whole"],
  ["a little longer", [{ startS: 1, endS: 4.8 }], null],
  ["in it", [{ startS: 1, endS: 2 }], null],
])("parts have a gap where a track has already ended: %s", async (_, ranges, expected) => {
  const resources = new Map([["film.mp4", resource("video/mp4", shortVideo())]]);
  await using harness = await openEntry(() => engine, resources, "film.mp4");
  const { warnings } = await harness.download({ ranges });
  expect(warnings).toEqual(expected === null ? [] : [{ code: "gap", message: expected }]);
});
