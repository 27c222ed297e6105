import { afterAll, describe, expect, it } from "vitest";
import { factsOf, ffmpeg, fileSource, missing, openFolder, pictures, remux } from "./mp4-media.ts";

const folder = openFolder();
afterAll(folder.remove);

const fragmented = "-movflags +frag_keyframe+empty_moov+default_base_moof";
const first = folder.path("first.mp4");
const second = folder.path("second.mp4");
const target = folder.path("target.mp4");

/** Two parts of one presentation, in one track. */
function join(secondOffsetS: number | null) {
  const a = [...fileSource(first).pieces];
  const b = [...fileSource(second).pieces];
  const place = (index: number) =>
    index < a.length ? { timeline: 0, offsetS: null } : { timeline: 1, offsetS: secondOffsetS };
  return remux([{ pieces: [...a, ...b], place }], target);
}

describe.skipIf(missing("libx264"))("joining MP4 timelines", () => {
  it("goes on where the timeline before it ended, in another format and timescale", async () => {
    ffmpeg(`${pictures(2)} -c:v libx264 -bf 2 -g 25 ${fragmented} ${first}`);
    ffmpeg(
      `${pictures(2)} -c:v libx264 -pix_fmt yuv420p -profile:v baseline -g 25 -s 320x180 -video_track_timescale 1000 ` +
        `-output_ts_offset 777 ${fragmented} ${second}`,
    );
    expect(join(null).durationS).toBeCloseTo(4, 2);
    const { streams, durationS, complaints } = await factsOf(target);
    expect(streams).toMatchObject([{ codec: "h264", packets: 100 }]);
    expect(durationS).toBeCloseTo(4, 1);
    expect(complaints).not.toMatch(/error|invalid/i);
  });

  it("puts a timeline where the manifest says it is", async () => {
    ffmpeg(`${pictures(2)} -c:v libx264 -g 25 ${fragmented}+negative_cts_offsets ${first}`);
    ffmpeg(`${pictures(2)} -c:v libx264 -g 25 ${fragmented}+negative_cts_offsets ${second}`);
    expect(join(10).durationS).toBeCloseTo(12, 2);
    expect((await factsOf(target)).streams).toMatchObject([{ packets: 100 }]);
  });
});
