import { afterAll, expect, test } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import type { Format } from "../../src/model/page-info.ts";
import type { TaskOptions } from "../../src/model/task.ts";
import { formatOf } from "../formats.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge } from "../media/resources.ts";
import type { Site } from "../media/site.ts";
import { startTestSite } from "../media/test-site.ts";
import { createRunnerHarness } from "./harness.ts";
import { createTestResolver, pageOf } from "./resolver.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

/** A site with variants of 1080, 720, 480, 360 and 240 lines, of which it refuses what `refuses` says. */
async function openVariants(status: number, refuses: (path: string) => boolean) {
  const laid = heights.map((height) => {
    const { resources, lines } = layFiles(`${height}`, readRendition("high.m2t"), "ts");
    return merge(resources, new Map([[`${height}.m3u8`, hls(mediaPlaylist(lines))]]));
  });
  const site = await startTestSite(merge(...laid));
  for (const path of site.resources.keys()) {
    if (refuses(path)) site.answer(path, (response) => response.writeHead(status).end());
  }
  return site;
}

const heights = [1080, 720, 480, 360, 240];

const variantsAt = (site: Site): Format[] =>
  heights.map((height) => formatOf(`hls-${height}`, { url: site.url(`${height}.m3u8`), protocol: "m3u8", height }));

async function run(formats: Format[], options: TaskOptions = {}) {
  const resolver = createTestResolver(async (url) => pageOf(url, { formats }));
  const harness = createRunnerHarness({ resolver, engine });
  const { id } = await harness.add(undefined, options);
  harness.runner.start();
  return harness.until(id, ({ state }) => state === "succeeded" || state === "failed");
}

test.each([
  [404, "the playlist", (path: string) => path === "1080.m3u8"],
  [403, "the playlist", (path: string) => path === "1080.m3u8"],
  [410, "each segment", (path: string) => path.startsWith("1080/")],
])(
  "if a server answers with %i for %s of the best variant, the next one is downloaded, of which a warning tells",
  async (status, _, refuses) => {
    const site = await openVariants(status, refuses);
    const { state, file } = await run(variantsAt(site));
    expect(state).toBe("succeeded");
    const message = expect.stringMatching(new RegExp(`^the format hls-1080 was left, .* ${status}`));
    expect(file?.warnings).toEqual([{ code: "format_left", message }]);
    expect(site.asked.some(({ path }) => path === "720.m3u8")).toBe(true);
    expect(site.asked.some(({ path }) => path === "480.m3u8")).toBe(false);
  },
);

test("a variant that is asked for by its id has no other in its place", async () => {
  const site = await openVariants(404, (path) => path === "1080.m3u8");
  const { state, error } = await run(variantsAt(site), { format_id: "hls-1080" });
  expect([state, error?.code]).toEqual(["failed", "upstream_status"]);
  expect(site.asked.some(({ path }) => path === "720.m3u8")).toBe(false);
});

test("a variant of which some media were there has no other in its place", async () => {
  const site = await openVariants(404, (path) => path === "1080/3.ts");
  const { state, error } = await run(variantsAt(site));
  expect([state, error?.code]).toEqual(["failed", "upstream_status"]);
  expect(site.asked.some(({ path }) => path === "720.m3u8")).toBe(false);
});

test("a video that is not there at all fails with what the server said of the best variant", async () => {
  const site = await openVariants(404, (path) => path.endsWith(".m3u8"));
  const { state, error } = await run(variantsAt(site));
  expect(state).toBe("failed");
  expect(error?.message).toContain("1080.m3u8");
  expect(site.asked.map(({ path }) => path)).toEqual(["1080.m3u8", "720.m3u8", "480.m3u8", "360.m3u8"]);
});

test("silent video does not take the place of video with audio", async () => {
  const site = await openVariants(404, (path) => path === "1080.m3u8");
  const [best, next] = variantsAt(site);
  const { state } = await run([best!, { ...next!, acodec: "none" }]);
  expect(state).toBe("failed");
});
