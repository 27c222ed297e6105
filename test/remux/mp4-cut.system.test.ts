import { describe, expect, it } from "vitest";
import { noAdditions } from "../../src/remux/additions.ts";
import { audioFaults, cut, expectedCut, present, randomRanges } from "./mp4-cuts.ts";
import { ffmpeg, missing, openFolder, readDuration } from "./mp4-media.ts";

const folder = openFolder();

const seconds = 8;
const video = `-f lavfi -i testsrc2=size=160x90:rate=25:duration=${seconds}`;
// Noise: every packet differs.
const audio = `-f lavfi -i anoisesrc=duration=${seconds}:sample_rate=48000:amplitude=0.3:seed=7`;
const both = `${video} ${audio}`;

const sources = [
  ["H.264 with B-frames, and AAC", ["libx264"], `${both} -c:v libx264 -preset veryfast -bf 3 -g 50 -c:a aac`],
  [
    "H.264 with open GOPs, in slices and without CABAC",
    ["libx264"],
    `${both} -c:v libx264 -preset veryfast -bf 5 -g 25 -x264-params open-gop=1:b-pyramid=normal:b-adapt=0:ref=6:slices=3:cabac=0 -c:a aac`,
  ],
  ["one GOP", ["libx264"], `${both} -c:v libx264 -preset veryfast -g 1000 -sc_threshold 0 -c:a aac`],
  [
    "H.264 that is refreshed in parts, whose sync samples are none but the first one",
    ["libx264"],
    `${both} -c:v libx264 -preset veryfast -bf 3 -g 50 -x264-params intra-refresh=1 -c:a aac`,
  ],
  [
    "HEVC with open GOPs, and AC-3",
    ["libx265"],
    `${both} -c:v libx265 -preset ultrafast -x265-params log-level=error:open-gop=1:keyint=30:bframes=4 -c:a ac3`,
  ],
  [
    "VP9 and Opus",
    ["libvpx-vp9", "libopus"],
    `${both} -c:v libvpx-vp9 -cpu-used 8 -deadline realtime -g 60 -c:a libopus`,
  ],
  [
    "frames of changing length",
    ["libx264"],
    `${both} -vf select='not(mod(n\\,7))+gt(mod(n\\,5)\\,2)' -fps_mode vfr -c:v libx264 -preset veryfast -g 20 -c:a aac`,
  ],
  [
    "59.94 frames a second",
    ["libx264"],
    `-f lavfi -i testsrc2=size=160x90:rate=60000/1001:duration=${seconds} ${audio} -c:v libx264 -preset veryfast -bf 3 -g 100 -c:a aac`,
  ],
  [
    "interlaced H.264",
    ["libx264"],
    `-f lavfi -i testsrc2=size=160x96:rate=50:duration=${seconds} ${audio} -vf interlace -c:v libx264 -flags +ilme+ildct -preset veryfast -bf 3 -g 50 -c:a aac`,
  ],
] as const;

it.skipIf(missing("flac"))("reads the cues of its subtitles once, as they may come from the disk", async () => {
  const [source, target] = [folder.path("long.mp4"), folder.path("long-cut.mp4")];
  // Longer than what is written before space for the index is reserved.
  ffmpeg(`-f lavfi -i anoisesrc=d=40:r=48000 -ac 2 -c:a flac -strict -2 -y ${source}`);
  let reads = 0;
  const track = {
    language: "en",
    name: "",
    role: "subtitles" as const,
    automatic: false,
    get cues() {
      reads++;
      return [{ startS: 1, endS: 2, text: "Hello", settings: "" }];
    },
  };
  await cut(source, target, [{ startS: 1, endS: 39 }], { ...noAdditions, subtitles: [track] });
  expect(reads).toBe(1);
});

/** What FFmpeg says of parts that are joined: of the times of samples that are not presented. */
const harmless = /DTS -?\d+ < -?\d+ out of order|DTS discontinuity/;

describe.concurrent("a cut presents exactly the ranges, rounded to frames:", () => {
  it.for(sources.map(([name, encoders, line]) => ({ name, encoders, line })))(
    "$name",
    async ({ name, encoders, line }, { skip }) => {
      skip(missing(...encoders) !== false);
      const source = folder.path(`${name.replaceAll(/\W/g, "-")}.mp4`);
      ffmpeg(`${line} -y ${source}`);
      const { frames, packets } = await present(source);
      const durationS = await readDuration(source);
      const videoEndS = frames.at(-1)!.timeS + 0.04;
      for (const [seed, count] of [1, 10].entries()) {
        const ranges = randomRanges(seed, count, seconds);
        const target = folder.path(`${name.replaceAll(/\W/g, "-")}-${seed}.mp4`);
        const result = await cut(source, target, ranges);
        const expected = expectedCut(frames, ranges, /changing|59/.test(name) ? durationS : videoEndS);
        const { frames: shown, packets: heard, complaints } = await present(target);
        const note = JSON.stringify({ seed, ranges });
        expect(
          shown.map(({ hash }) => hash),
          note,
        ).toEqual(expected.frames.map(({ hash }) => hash));
        const offS = Math.max(
          ...shown.map(({ timeS }, i) => Math.abs(timeS - shown[0]!.timeS - expected.frames[i]!.timeS)),
        );
        expect(offS, note).toBeLessThan(0.002);
        expect(audioFaults(heard, packets, expected), note).toEqual([]);
        expect(result?.durationS).toBeCloseTo(expected.durationS, 3);
        expect(await readDuration(target), note).toBeCloseTo(expected.durationS, 2);
        // A decoder misses what the pictures before an open GOP refer to; of H.264, they are left out.
        if (name.includes("HEVC with open")) continue;
        expect(
          complaints.split("\n").filter((text) => !harmless.test(text)),
          note,
        ).toEqual([""]);
      }
    },
  );
});
