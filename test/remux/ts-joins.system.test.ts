import { readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { createMpegTsDemuxer } from "../../src/remux/mpeg-ts/demuxer.ts";
import { openMp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { createTimelines } from "../../src/remux/timelines.ts";
import { playThrough } from "./mp4-cuts.ts";
import { missing } from "./mp4-media.ts";
import { createMediaFolder, run, videoInput } from "./ts-media.ts";

const folder = createMediaFolder();
afterAll(() => folder.remove());

/** Returns the checksums of the pictures that FFmpeg shows of a file, in order. */
function picturesOf(path: string): string[] {
  const lines = run("ffmpeg", "-v", "quiet", "-i", path, "-vsync", "passthrough", "-f", "framecrc", "-").split("\n");
  return lines.filter((line) => line.startsWith("0,")).map((line) => line.slice(line.lastIndexOf(",")));
}

/** Returns what FFmpeg's decoders complain about while they play a file, each edit from the sync sample before it on. */
async function complaintsOf(path: string): Promise<string[]> {
  const { complaints } = await playThrough(path);
  return complaints.split("\n").filter((line) => /^\[(?:h264|hevc) /.test(line));
}

/** Joins segments into one MP4, each on a timeline of its own; returns its path. */
function join(segments: readonly string[]): string {
  const path = folder.path("joined.mp4");
  const writer = openMp4Writer({ path, expectedS: 4 });
  const demuxer = createMpegTsDemuxer({ sink: writer, timelines: createTimelines(), kinds: ["video"] });
  for (const [timeline, segment] of segments.entries())
    demuxer.read(readFileSync(segment), { timeline, offsetS: null });
  demuxer.flush();
  writer.finish();
  return path;
}

const encoders = [
  ["libx264", "-x264-params", "open-gop=1:keyint=27:min-keyint=27:bframes=3:b-adapt=0:scenecut=0"],
  ["libx265", "-x265-params", "open-gop=1:keyint=27:min-keyint=27:bframes=3:b-adapt=0:scenecut=0:log-level=none"],
] as const;

describe.each(encoders)("segments of MPEG-TS that begin within open groups of pictures of %s", (encoder, ...params) => {
  describe.skipIf(missing(encoder))("are joined", () => {
    const split = "-preset veryfast -bsf:v dump_extra -f segment -segment_time 1.08 -segment_list".split(" ");
    const make = (): string[] => {
      const list = [folder.path(`${encoder}.csv`), "-segment_format", "mpegts"];
      const output = [...list, folder.path(`${encoder}-%d.ts`)];
      run("ffmpeg", "-v", "error", "-y", ...videoInput(4), "-c:v", encoder, ...params, ...split, ...output);
      return [0, 1, 2, 3].map((index) => folder.path(`${encoder}-${index}.ts`));
    };

    it("with every picture that can be decoded, and no other", async () => {
      const [first, second, third, fourth] = make() as [string, string, string, string];
      // FFmpeg leaves out, at the start of a file, what it cannot decode.
      const path = join([first, third]);
      expect(picturesOf(path)).toEqual([first, third].flatMap(picturesOf));
      expect(await complaintsOf(path)).toEqual([]);
      expect(picturesOf(join([fourth, second]))).toEqual([fourth, second].flatMap(picturesOf));
    });

    it("whole if they continue each other", () => {
      const all = make();
      expect(picturesOf(join(all))).toHaveLength(100);
    });
  });
});
