import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { findFileWarnings } from "../../src/engines/native/output/file-warnings.ts";
import { CountingSink } from "../../src/engines/native/output/counting-sink.ts";
import { FetchStats } from "../../src/engines/native/sources/fetch-stats.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { type Piece, readRendition } from "../media/rendition.ts";
import { hls, resource } from "../media/resources.ts";
import { openFolder } from "../remux/mp4-media.ts";
import { audioFormat, fillPattern, videoFormat } from "../remux/mp4-samples.ts";

const folder = openFolder();
const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

/** Of a file from which nothing was left out. */
const complete = {
  drops: { video: 0, audio: 0 },
  left: { video: 0, audio: 0 },
  originS: 0,
  shortEnds: [],
  listed: [],
  subtitles: [],
};

/** Returns the codes of the warnings of a file with 4 s of video, a gap of 3 s, and 4 s more. */
function warningsOf(listedS: readonly number[]): string[] {
  const path = join(folder.path("."), "gap.mp4");
  const writer = new Mp4Writer({ path, expectedS: 11 });
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
  const file = { path, durationS, written: { ...complete, tracks }, listedKinds: ["video" as const] };
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

/** Returns the codes of the warnings of a file with 10 s of video, and audio in these seconds, if 5 segments of 2 s are listed. */
function warningsOfApart(fromS: number, toS: number, isLive = false, audioSource: "main" | "audio" = "main"): string[] {
  const path = join(folder.path("."), "apart.mp4");
  const writer = new Mp4Writer({ path, expectedS: 10 });
  const counts = [videoFormat, audioFormat].map((format, index) => {
    const sink = new CountingSink(writer);
    const track = sink.setFormat(format);
    const step = format.timescale / 25;
    const [from, to] = index === 0 ? [0, 250] : [fromS * 25, toS * 25];
    for (let i = from; i < to; i++) {
      const dts = i * step;
      sink.write(track, { data: fillPattern(20, i), dts, pts: dts, duration: step, isSync: true });
    }
    return sink;
  });
  const { durationS } = writer.finish();
  const stats = new FetchStats();
  stats.isLive = isLive;
  for (let i = 0; i < 5; i++) stats.addSegment(2);
  const sources = ["main", audioSource] as const;
  const tracks = counts.flatMap((sink, i) => sink.tracks().map((stat) => ({ ...stat, source: sources[i]! })));
  const file = { path, durationS, written: { ...complete, tracks }, listedKinds: ["video" as const] };
  return findFileWarnings(new Map(sources.map((source) => [source, stats])), file).map(({ code }) => code);
}

it.each([
  [false, ["gap"]],
  [true, []],
])("tracks that end a segment of 2 s apart have a gap, but not in a recording: %s", (isLive, expected) => {
  expect(warningsOfApart(0, 8, isLive)).toEqual(expected);
});

it("a track that begins later than the other has no gap if it lasts as long as the manifest lists, and one if it lacks a second of that", () => {
  expect(warningsOfApart(4, 14)).toEqual([]);
  expect(warningsOfApart(4, 13)).toEqual(["gap"]);
});

it("a track that begins more than 8 s after the other of its source has a gap though it lasts as long as the manifest lists", () => {
  expect(warningsOfApart(9, 19)).toEqual(["gap", "duration_differs"]);
  expect(warningsOfApart(90_000, 90_010)).toEqual(["gap", "duration_differs"]);
});

it("a separate track that begins later has a gap, although it lasts as long as listed: its segments may be in another order", () => {
  expect(warningsOfApart(4, 14, false, "audio")).toEqual(["gap"]);
});

/** A file with 4 s of video, and audio of so many times 40 ms. */
function shortVideo(audioSamples: number): Buffer {
  const path = join(folder.path("."), "short-video.mp4");
  const writer = new Mp4Writer({ path, expectedS: 10 });
  for (const [format, count] of [
    [videoFormat, 100],
    [audioFormat, audioSamples],
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
  ["a little longer", [{ startS: 1, endS: 4.8 }], "no video from 4.0 to 4.8 s of the whole"],
  ["hardly longer", [{ startS: 1, endS: 4.08 }], null],
  ["in it", [{ startS: 1, endS: 2 }], null],
  ["all of it, as it was published", [], null],
])("parts have a gap where a track has already ended: %s", async (_, ranges, expected) => {
  const resources = new Map([["film.mp4", resource("video/mp4", shortVideo(250))]]);
  await using harness = await openEntry(() => engine, resources, "film.mp4");
  const { warnings } = await harness.download({ ranges });
  expect(warnings).toEqual(expected === null ? [] : [{ code: "gap", message: expected }]);
});

it("parts have no gap where a track ends shortly before the others", async () => {
  const resources = new Map([["film.mp4", resource("video/mp4", shortVideo(120))]]);
  await using harness = await openEntry(() => engine, resources, "film.mp4");
  expect((await harness.download({ ranges: [{ startS: 1, endS: 4.8 }] })).warnings).toEqual([]);
});

const without = readRendition("silent.m2t").pieces;

it.each<[string, (pieces: Piece[]) => Piece[], boolean, string[]]>([
  ["lacks it at the start", (pieces) => [without[0]!, ...pieces.slice(1)], true, ["gap"]],
  ["lacks it at the end", (pieces) => [...pieces.slice(0, -1), without.at(-1)!], true, ["gap"]],
  [
    "has nothing but tables at the start",
    (pieces) => cutFirst(pieces, 3 * 188),
    true,
    ["frames_missing", "duration_differs"],
  ],
  ["has it in every segment", (pieces) => pieces, true, []],
  ["says 4 % too much", (pieces) => pieces.map((piece) => ({ ...piece, durationS: 1.04 })), true, []],
  [
    "lacks it at the start, and lasts whole seconds, as others are rounded",
    (pieces) => [without[0]!, ...pieces.slice(1)],
    false,
    ["gap"],
  ],
])("audio alone is compared with the list of its segments, which %s", async (_, change, isExact, expected) => {
  const { init, pieces } = readRendition("low.m2t");
  const exact = change(pieces).map((piece) =>
    isExact && piece.durationS === 1 ? { ...piece, durationS: 1.00001 } : piece,
  );
  const { resources, lines } = layFiles("s", { init, pieces: exact }, "ts");
  resources.set("index.m3u8", hls(mediaPlaylist(lines)));
  await using harness = await openEntry(() => engine, resources, "index.m3u8");
  const { warnings } = await harness.download({ audioOnly: true });
  expect(warnings.map(({ code }) => code)).toEqual(expected);
});

const cutFirst = ([first, ...others]: Piece[], bytes: number): Piece[] => [
  { ...first!, data: first!.data.subarray(0, bytes) },
  ...others,
];
