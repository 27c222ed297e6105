import { readFileSync, writeFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { createMpegTsDemuxer } from "../../src/remux/mpeg-ts/demuxer.ts";
import { createMp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { makeMedia } from "../media/long-media.ts";
import { readMediaSync, readTogether } from "../media/read-media.ts";
import { present } from "./mp4-cuts.ts";
import { missing } from "./mp4-media.ts";
import { createMediaFolder, videoInput } from "./ts-media.ts";

const folder = createMediaFolder();

/** Returns the checksums of the pictures that FFmpeg shows of each of these files, in order. */
async function picturesOf(...paths: string[]): Promise<string[][]> {
  const outputs = (input: number, pipe: string) =>
    `-map ${input}:v -fps_mode passthrough -f framecrc ${pipe}`.split(" ");
  const texts = await readTogether(paths, outputs, "-v", "quiet", "-nostdin");
  return texts.map((text) => {
    const lines = text.split("\n").filter((line) => line.startsWith("0,"));
    return lines.map((line) => line.slice(line.lastIndexOf(",")));
  });
}

/** Returns what FFmpeg's decoders complain about while they play a file, each edit from the sync sample before it on. */
async function complaintsOf(path: string): Promise<string[]> {
  const { complaints } = await present(path);
  return complaints.split("\n").filter((line) => /^\[(?:h264|hevc) /.test(line));
}

const containers = {
  mpegts: { create: createMpegTsDemuxer, options: ["-hls_segment_type", "mpegts"] },
  fmp4: { create: createMp4Demuxer, options: ["-hls_segment_type", "fmp4", "-hls_fmp4_init_filename", "init.mp4"] },
};
type Container = keyof typeof containers;

let joins = 0;

/** Writes segments into an MP4, those of a list on one timeline; returns its path, and what could be streamed of it before its end. */
async function write(lists: readonly (readonly string[])[], container: Container) {
  joins += 1;
  const path = folder.path(`joined-${joins}.mp4`);
  const writer = new Mp4Writer({ path, expectedS: 4 });
  const { create } = containers[container];
  const demuxer = create({ sink: writer, timelines: new Timelines(), kinds: ["video"] });
  for (const [timeline, segments] of lists.entries()) {
    for (const segment of segments) demuxer.read(readFileSync(segment), { timeline, offsetS: null });
  }
  demuxer.flush();
  writer.cut();
  const fragments = await writer.publish(true);
  await writer.settle();
  writer.finish();
  return { path, fragments };
}

/** Joins segments into one MP4, each on a timeline of its own; returns its path. */
const join = async (segments: readonly string[], container: Container): Promise<string> =>
  (
    await write(
      segments.map((segment) => [segment]),
      container,
    )
  ).path;

const closed = "min-keyint=13:b-adapt=0:scenecut=0";
const encoders = [
  ["libx264", "-x264-params", `open-gop=1:keyint=27:bframes=3:${closed}`],
  ["libx264", "-x264-params", `open-gop=1:keyint=30:bframes=5:b-pyramid=strict:ref=2:${closed}`],
  ["libx264", "-x264-params", `open-gop=1:keyint=25:bframes=2:ref=6:slices=3:no-cabac=1:${closed}`],
  ["libx265", "-x265-params", `open-gop=1:keyint=27:bframes=3:log-level=none:${closed}`],
] as const;
const cases = encoders.flatMap((params) => [["mpegts", ...params] as const, ["fmp4", ...params] as const]);

describe.each(cases)(
  "segments in %s that begin within open groups of pictures of %s (%s %s)",
  (container, encoder, ...params) => {
    describe.skipIf(missing(encoder))("are joined", () => {
      const split = "-preset veryfast -bsf:v dump_extra -f hls -hls_time 1 -hls_playlist_type vod".split(" ");
      let segments: string[];
      beforeAll(async () => {
        const output = [...containers[container].options, "-hls_segment_filename", "%d", "list"];
        const line = [...videoInput(4), "-c:v", encoder, ...params, ...split, ...output].join(" ");
        const { resources } = await makeMedia(line, "list");
        const bytesOf = (name: string) => resources.get(name)!.body;
        segments = ["0", "1", "2", "3"].map((name) => {
          const path = folder.path(`${container}-${encoder}-${name}`);
          const init = container === "fmp4" ? [bytesOf("init.mp4")] : [];
          writeFileSync(path, Buffer.concat([...init, bytesOf(name)]));
          return path;
        });
      });

      it("with every picture that can be decoded, and no other", async () => {
        const [first, second, third, fourth] = segments as [string, string, string, string];
        // FFmpeg leaves out, at the start of a file, what it cannot decode.
        const path = await join([first, third], container);
        const other = await join([fourth, second], container);
        const [joined, joinedOther, ...apart] = await picturesOf(path, other, first, third, fourth, second);
        expect(joined).toEqual(apart.slice(0, 2).flat());
        expect(joinedOther).toEqual(apart.slice(2).flat());
        expect(await complaintsOf(path)).toEqual([]);
      });

      it("from the first one on that can be decoded, also in a stream", async () => {
        const [, ...later] = segments;
        const { path, fragments } = await write([later], container);
        const [whole, joined, first] = await picturesOf(await join(segments, container), path, later[0]!);
        expect(joined).toEqual(whole!.slice(whole!.indexOf(first![0]!)));
        expect(await complaintsOf(path)).toEqual([]);
        expect(fragments?.length).toBeGreaterThan(0);
      });

      it("whole if they continue each other", async () => {
        const [pictures] = await picturesOf(await join(segments, container));
        expect(pictures).toHaveLength(100);
      });
    });
  },
);

/** Writes a copy of a file with one track whose samples all refer to the first sample entry, as Chromium reads it; returns its path. */
function withFirstEntry(path: string): string {
  const bytes = readFileSync(path);
  const at = bytes.indexOf("stsc") + 4;
  for (let i = 0; i < bytes.readUInt32BE(at + 4); i++) bytes.writeUInt32BE(1, at + 16 + 12 * i);
  writeFileSync(folder.path("first-entry.mp4"), bytes);
  return folder.path("first-entry.mp4");
}

describe.each([
  ["libx264", ["-profile:v", "baseline"], ["-profile:v", "high", "-bf", "2"]],
  ["libx265", ["-x265-params", "ctu=32:log-level=none"], ["-x265-params", "ctu=16:sao=0:log-level=none"]],
])("fragmented MP4 of %s", (encoder, ...params) => {
  describe.skipIf(missing(encoder))("whose parameters change", () => {
    let files: string[];
    beforeAll(() => {
      files = params.map((own, index) => {
        const name = `${encoder}-${index}.mp4`;
        const fragmented = "-movflags frag_keyframe+empty_moov+default_base_moof".split(" ");
        folder.make(name, ...videoInput(2), "-c:v", encoder, "-g", "13", ...own, ...fragmented);
        return folder.path(name);
      });
    });

    it("plays where players read only the first sample entry, too", async () => {
      const [first, second] = files as [string, string];
      const path = await join([first, second, first], "fmp4");
      const [joined, withOne, ...apart] = await picturesOf(path, withFirstEntry(path), first, second, first);
      expect(joined).toEqual(apart.flat());
      expect(withOne).toEqual(apart.flat());
    });

    it("keeps its samples as they are until then", async () => {
      const [first, second] = files as [string, string];
      const samplesOf = (path: string) =>
        readMediaSync("ffprobe", ..."-v error -show_entries packet=size -of csv=p=0".split(" "), path);
      expect(samplesOf(await join([first, first], "fmp4"))).toBe(samplesOf(first).repeat(2));
      expect(samplesOf(await join([first, second], "fmp4")).startsWith(samplesOf(first))).toBe(true);
    });
  });
});
