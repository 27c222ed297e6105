import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { hls, resource, type Resources } from "../media/resources.ts";
import { createMediaFolder, hasFfmpeg, run, x264 } from "../remux/ts-media.ts";

const media = createMediaFolder();
const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

/** Returns a stream of segments of 2 s with so much video, and audio from one time on to another. */
function makeStream(kind: "ts" | "mp4", fromS: number, toS: number, videoS = 9): Resources {
  const folder = media.path(`${kind}-${fromS}-${toS}-${videoS}`);
  mkdirSync(folder, { recursive: true });
  const inputs = [
    ...`-f lavfi -i testsrc2=size=160x120:rate=25:duration=${videoS}`.split(" "),
    ...`-itsoffset ${fromS} -f lavfi -i sine=sample_rate=48000:duration=${toS - fromS}`.split(" "),
  ];
  const segments = `-c:a aac -force_key_frames expr:gte(t,n_forced*2) -f hls -hls_time 2 -hls_list_size 0`.split(" ");
  const type = kind === "mp4" ? ["-hls_segment_type", "fmp4"] : [];
  run("ffmpeg", "-v", "error", "-y", ...inputs, ...x264, ...segments, ...type, `${folder}/index.m3u8`);
  return new Map(
    readdirSync(folder).map((name) => {
      const body = readFileSync(join(folder, name));
      return [name, name.endsWith("m3u8") ? hls(body.toString()) : resource("video/mp4", body)];
    }),
  );
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
      expect(await warningsOf(makeStream(kind, 0, 8.2))).toEqual([]);
    });

    it(`has a gap if it begins long after the video, or ends long before: ${kind}`, async () => {
      const late = makeStream(kind, 0, 9);
      const first = `index0.${kind === "ts" ? "ts" : "m4s"}`;
      late.set(first, makeStream(kind, 2, 9).get(first)!);
      expect(await warningsOf(late)).toEqual([
        expect.stringMatching(/^gap: the audio begins (1\.9|2\.0) s after the video of its source$/),
      ]);
      expect(await warningsOf(makeStream(kind, 0, 6.5))).toEqual([
        expect.stringMatching(/^gap: the audio ends 2\.[45] s before the video of its source$/),
      ]);
    });

    it(`lacks what the last segment does not have of both: ${kind}`, async () => {
      const list = makeStream(kind, 0, 9).get("index.m3u8")!;
      const short = makeStream(kind, 0, 8.2, 8.2);
      expect(await warningsOf(short.set("index.m3u8", list))).toEqual([
        expect.stringMatching(/^frames_missing: the last segment has 0\.[78] s less than the playlist says$/),
      ]);
    });
  }
});
