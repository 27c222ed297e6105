import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry, type EngineHarness } from "../contracts/engine/harness.ts";
import { layFiles, mediaPlaylist, multivariant } from "../media/hls.ts";
import { probe } from "../media/probe.ts";
import { readMedium, readRendition } from "../media/rendition.ts";
import { hls, merge, resource, type Resource, type Resources } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());
const open = () => engine;

const stream = layFiles("ts", readRendition("high.m2t"), "ts");
const playlist = hls(mediaPlaylist(stream.lines));

/** Downloads a URL of which nothing is known. */
const download = (harness: EngineHarness) => {
  const { format } = harness.job;
  return harness.download({ format: { ...format, ext: null } });
};

describe.concurrent("a URL without extension and media type", () => {
  it("is read as HLS if it leads to a playlist", async () => {
    const resources = merge(stream.resources, new Map([["watch", playlist]]));
    await using harness = await openEntry(open, resources, "watch");
    const { streams } = await probe((await download(harness)).path);
    expect(streams).toMatchObject([{ frames: 150 }, { frames: 283 }]);
  });

  it("is read as DASH if it leads to an MPD", async () => {
    const text = '\n<?xml version="1.0"?><MPD type="dynamic"><Period/></MPD>';
    const mpd = resource("application/octet-stream", text);
    await using harness = await openEntry(open, new Map([["watch", mpd]]), "watch");
    await expect(download(harness)).rejects.toThrow(/must have an availabilityStartTime/);
  });

  it("is downloaded as a file if it leads to a file", async () => {
    const film = resource("video/mp4", readMedium("index-first.mp4"));
    await using harness = await openEntry(open, new Map([["watch", film]]), "watch");
    expect(await download(harness)).toMatchObject({ ext: "mp4", size: film.body.length });
  });
});

describe.concurrent("a multivariant playlist that was not read before", () => {
  it("yields only its separate audio if audioOnly is set", async () => {
    const audio = layFiles("en", readRendition("audio-en.m4s"), "m4s");
    const video = layFiles("high", readRendition("video.m4s"), "m4s");
    const master = multivariant(
      [{ uri: "high.m3u8", bandwidth: 110_000, codecs: "avc1.64000c,mp4a.40.2", audio: "aac" }],
      [{ group: "aac", language: "en", uri: "en.m3u8", isDefault: true }],
    );
    const resources = merge(
      audio.resources,
      video.resources,
      new Map([
        ["index.m3u8", hls(master)],
        ["en.m3u8", hls(mediaPlaylist(audio.lines))],
        ["high.m3u8", hls(mediaPlaylist(video.lines))],
      ]),
    );
    await using harness = await openEntry(open, resources, "index.m3u8");
    const made = await harness.download({ audioOnly: true });
    expect((await probe(made.path)).streams).toMatchObject([{ kind: "audio" }]);
    expect(harness.site.asked.some(({ path }) => path.startsWith("high/"))).toBe(false);
  });
});

describe.concurrent("no URL query is in the error", () => {
  const itself = { uri: "index.m3u8?token=secret", bandwidth: 1, codecs: "avc1.64000c" };
  const cases: readonly (readonly [name: string, body: Resource | null])[] = [
    ["lists itself", hls(multivariant([itself]))],
    ["is no playlist", hls("<!doctype html><title>Please log in</title>")],
    ["is missing", null],
  ];
  for (const [name, body] of cases) {
    it(`of a playlist that ${name}`, async () => {
      const resources: Resources = new Map(body && [["index.m3u8", body]]);
      await using harness = await openEntry(open, resources, "index.m3u8");
      const url = harness.site.url("index.m3u8?token=secret");
      const format = { ...harness.job.format, url, manifest_url: url };
      const error = await harness.download({ format }).catch((failure: unknown) => failure);
      expect(error).toMatchObject({ message: expect.stringContaining("/index.m3u8") });
      expect(error).toMatchObject({ message: expect.not.stringContaining("secret") });
    });
  }
});
