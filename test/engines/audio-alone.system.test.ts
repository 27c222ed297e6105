import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { makeMedia } from "../media/long-media.ts";
import type { Resources } from "../media/resources.ts";
import { hasFfmpeg, x264 } from "../remux/ts-media.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

/** Returns a stream of segments of 2 s with so much video, and audio from one time on to another. */
async function makeStream(kind: "ts" | "mp4", fromS: number, toS: number, videoS = 9): Promise<Resources> {
  const video = `-f lavfi -i testsrc2=size=160x120:rate=25:duration=${videoS}`;
  const audio = `-itsoffset ${fromS} -f lavfi -i sine=sample_rate=48000:duration=${toS - fromS}`;
  const segments = "-c:a aac -force_key_frames expr:gte(t,n_forced*2) -f hls -hls_time 2 -hls_list_size 0";
  const type = kind === "mp4" ? "-hls_segment_type fmp4 " : "";
  const entry = "index.m3u8";
  return new Map((await makeMedia(`${video} ${audio} ${x264.join(" ")} ${segments} ${type}${entry}`, entry)).resources);
}

/** Returns the codes and messages of the warnings of its audio alone. */
async function warningsOf(resources: Resources): Promise<string[]> {
  await using harness = await openEntry(() => engine, resources, "index.m3u8");
  const { warnings } = await harness.download({ audioOnly: true });
  return warnings.map(({ code, message }) => `${code}: ${message}`);
}

describe.skipIf(!hasFfmpeg)("the audio alone of a stream that has video too", () => {
  for (const kind of ["ts", "mp4"] as const) {
    it(`is complete although it ends a little before the video: ${kind}`, async () => {
      expect(await warningsOf(await makeStream(kind, 0, 8.2))).toEqual([]);
    });

    it(`has a gap if it begins long after the video, or ends long before: ${kind}`, async () => {
      const late = await makeStream(kind, 0, 9);
      const first = `index0.${kind === "ts" ? "ts" : "m4s"}`;
      late.set(first, (await makeStream(kind, 2, 9)).get(first)!);
      expect(await warningsOf(late)).toEqual([
        expect.stringMatching(/^gap: the audio begins (1\.9|2\.0) s after the video of its source$/),
      ]);
      expect(await warningsOf(await makeStream(kind, 0, 6.5))).toEqual([
        expect.stringMatching(/^gap: the audio ends 2\.[45] s before the video of its source$/),
      ]);
    });

    it(`lacks what the last segment does not have of both: ${kind}`, async () => {
      const list = (await makeStream(kind, 0, 9)).get("index.m3u8")!;
      const short = await makeStream(kind, 0, 8.2, 8.2);
      expect(await warningsOf(short.set("index.m3u8", list))).toEqual([
        expect.stringMatching(/^frames_missing: the last segment has 0\.[78] s less than the playlist says$/),
      ]);
    });
  }
});
