import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { findFileWarnings } from "../../src/engines/native/output/file-warnings.ts";
import { CountingSink } from "../../src/engines/native/output/counting-sink.ts";
import { FetchStats } from "../../src/engines/native/sources/fetch-stats.ts";
import { openMp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { openFolder } from "../remux/mp4-media.ts";
import { audioFormat, fillPattern, videoFormat } from "../remux/mp4-samples.ts";

const folder = openFolder();
afterAll(folder.remove);

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
