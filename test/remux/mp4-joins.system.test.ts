import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { audioInput, inspectFile, ffmpeg, missing, openFolder, remux, videoInput } from "./mp4-media.ts";

const folder = openFolder();

const fragmented = "-movflags +frag_keyframe+empty_moov+default_base_moof";
const first = folder.path("first.mp4");
const second = folder.path("second.mp4");
const target = folder.path("target.mp4");

/** Remuxes two timelines of one presentation into one track. */
function join(secondOffsetS: number | null) {
  const timing = (index: number) => ({
    timeline: index,
    offsetS: index === 0 ? null : secondOffsetS,
  });
  return remux([{ segments: [first, second], timing }], target);
}

describe.skipIf(missing("libx264"))("joining MP4 timelines", () => {
  it("continues where the first timeline ended, in another format and timescale", async () => {
    ffmpeg(`${videoInput(2)} -c:v libx264 -bf 2 -g 25 ${fragmented} ${first}`);
    ffmpeg(
      `${videoInput(2)} -c:v libx264 -pix_fmt yuv420p -profile:v baseline -g 25 -s 320x180 -video_track_timescale 1000 ` +
        `-output_ts_offset 777 ${fragmented} ${second}`,
    );
    expect(join(null).durationS).toBeCloseTo(4, 2);
    const { streams, durationS, complaints } = await inspectFile(target);
    expect(streams).toMatchObject([{ codec: "h264", packets: 100 }]);
    expect(durationS).toBeCloseTo(4, 1);
    expect(complaints).not.toMatch(/error|invalid/i);
  });

  it("keeps the format of each, although the memory of a segment is used again", async () => {
    ffmpeg(`${videoInput(2)} -c:v libx264 -bf 2 -g 25 ${fragmented} ${first}`);
    ffmpeg(`${videoInput(2)} -c:v libx264 -g 25 -s 320x180 ${fragmented} ${second}`);
    join(null);
    const { videoMd5 } = await inspectFile(target);
    const memory = Buffer.alloc(1 << 20);
    function* segments() {
      for (const path of [first, second]) {
        const bytes = readFileSync(path);
        bytes.copy(memory);
        yield memory.subarray(0, bytes.length);
      }
    }
    remux([{ segments: segments(), timing: (timeline) => ({ timeline, offsetS: null }) }], target);
    expect((await inspectFile(target)).videoMd5).toBe(videoMd5);
  });

  it("refuses another codec", () => {
    ffmpeg(`${videoInput(2)} -c:v libx264 -g 25 ${fragmented} ${first}`);
    ffmpeg(`${videoInput(2)} -c:v mpeg4 -g 25 ${fragmented} ${second}`);
    expect(() => join(null)).toThrow(/changes its codec from H\.264 to mp4v/);
  });

  it("continues if times fall back or leap within a timeline", async () => {
    const both = `${videoInput(3)} ${audioInput(3)} -c:v libx264 -bf 2 -g 25 -c:a aac`;
    ffmpeg(`${both} ${fragmented} ${first}`);
    ffmpeg(`${both} -output_ts_offset 300 ${fragmented} ${second}`);
    const segments = [first, first, second, first].map((path) => readFileSync(path));
    const { durationS } = remux([{ segments }], target);
    expect(durationS).toBeGreaterThan(12);
    expect(durationS).toBeLessThan(12.4);
    const { streams, complaints } = await inspectFile(target);
    expect(streams[0]).toMatchObject({ codec: "h264", packets: 300 });
    expect(complaints).not.toMatch(/non monotonically/i);
  });

  it("puts in no time where times fall back and the video begins later than the audio", async () => {
    ffmpeg(`${videoInput(3)} ${audioInput(2.9)} -c:v libx264 -bf 2 -g 25 -c:a aac ${fragmented} ${first}`);
    const { durationS } = remux([{ segments: [first, first, first].map((path) => readFileSync(path)) }], target);
    // The first picture is at 0.08 s.
    expect(durationS).toBeCloseTo(9.08, 1);
    expect((await inspectFile(target)).streams[0]).toMatchObject({ packets: 225 });
  });

  it("puts a timeline where the manifest says it is", async () => {
    ffmpeg(`${videoInput(2)} -c:v libx264 -g 25 ${fragmented}+negative_cts_offsets ${first}`);
    ffmpeg(`${videoInput(2)} -c:v libx264 -g 25 ${fragmented}+negative_cts_offsets ${second}`);
    expect(join(10).durationS).toBeCloseTo(12, 2);
    expect((await inspectFile(target)).streams).toMatchObject([{ packets: 100 }]);
  });
});
