import { afterAll, describe, expect, test } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge, resource, type Resource } from "../media/resources.ts";
import { startTestSite } from "../media/test-site.ts";
import { createPageResolver } from "../resolvers/page/local-reader.ts";
import { formatAt } from "../contracts/engine/harness.ts";
import { createRunnerHarness } from "./harness.ts";
import { createTestResolver, pageOf } from "./resolver.ts";

const allowNetworks = ["127.0.0.1/32"];
const engine = createNativeEngine({ allowNetworks });
afterAll(() => engine.close());

const { resources, lines } = layFiles("ts", readRendition("high.m2t"), "ts");
const playlist = hls(mediaPlaylist(lines));
const page = resource("text/html", "<!doctype html><title>Gone</title><p>Come back later.");

/** Runs a task for `path`, at which there is `fault` the first times, then `then`. */
async function run(path: string, fault: Resource, { times = 2, then = playlist, maxAttempts = 4 } = {}) {
  const site = await startTestSite(merge(resources, new Map([[path, then]])));
  let left = times;
  site.answer(path, (response, serve) => {
    if ((left -= 1) < 0) return serve();
    return response.writeHead(200, { "content-type": fault.type }).end(fault.body);
  });
  const client = createHttpClient({ allowNetworks });
  const resolver = createPageResolver({ client, pageMaxBytes: 1_000_000 });
  const harness = createRunnerHarness({ resolver, engine, maxAttempts, backoffMs: 1 });
  const { id } = await harness.add(site.url(path));
  harness.runner.start();
  return harness.until(id, ({ state }) => state === "succeeded" || state === "failed");
}

describe("a task is retried while its server sends in place of a manifest", () => {
  const type = playlist.type;
  test.each([
    ["nothing", "live.m3u8", resource(type, "")],
    ["nothing, without an extension in the URL", "stream", resource(type, "")],
    ["a message with the type of a manifest", "stream", resource(type, "Too many viewers")],
    ["a message", "live.m3u8", resource("text/plain", "Too many viewers")],
    ["JSON", "live.m3u8", resource("application/json", '{"error":"busy"}')],
    ["a page", "live.m3u8", page],
    ["a page at the URL of an MPD", "live.mpd", page],
  ])("%s", async (_, path, fault) => {
    expect(await run(path, fault)).toMatchObject({ state: "succeeded", attempts: 3, error: null });
  });
});

test("a task is retried while a page that it has read before has no media", async () => {
  const site = await startTestSite(merge(resources, new Map([["i.m3u8", playlist]])));
  let readings = 0;
  const resolver = createTestResolver(async (url) => {
    readings += 1;
    return pageOf(url, { formats: readings > 1 && readings < 4 ? [] : [formatAt(site.url("i.m3u8"))] });
  });
  let isLost = true;
  site.answer("ts/0.ts", (response, serve) => {
    if (!isLost) return serve();
    isLost = false;
    return response.writeHead(403).end();
  });
  const harness = createRunnerHarness({ resolver, engine, maxAttempts: 4, backoffMs: 1 });
  const done = await harness.run(({ state }) => state === "succeeded" || state === "failed");
  expect(done).toMatchObject({ state: "succeeded", attempts: 3 });
});

describe("a task fails at once", () => {
  test.each([
    ["for a page without media", "watch", page, "no_media"],
    ["for a playlist that cannot be read", "live.m3u8", hls("#EXTM3U\n#EXTINF:4,\n"), "upstream_invalid"],
  ])("%s", async (_, path, fault, code) => {
    const failed = await run(path, fault, { times: Infinity });
    expect(failed).toMatchObject({ state: "failed", attempts: 1, error: { code, retryable: false } });
  });
});
