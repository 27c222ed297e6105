import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { type Laid, layFiles, mediaPlaylist, multivariant } from "../media/hls.ts";
import { probe } from "../media/probe.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

const tracks: Readonly<Record<string, Laid>> = {
  v: layFiles("v", readRendition("video.m4s"), "m4s"),
  a: layFiles("a", readRendition("audio-en.m4s"), "m4s"),
};
/** Each of a second, 25 pictures. */
const segments = readRendition("video.m4s").pieces.length;
const codecs = "avc1.64000c,mp4a.40.2";
const entry = multivariant(
  [{ uri: "v.m3u8", bandwidth: 200_000, codecs, resolution: "64x36", audio: "a" }],
  [{ group: "a", language: "en", uri: "a.m3u8", isDefault: true }],
);

/**
 * A live stream with separate audio.
 *
 * @param firstAt Number of the first segment that is still listed at the given reading of either playlist, from 1; `null`: it fails
 * @param isEndless Whether it never says that it has ended.
 */
async function openLive(firstAt: (reading: number) => number | null, isEndless = false) {
  const media = merge(tracks["v"]!.resources, tracks["a"]!.resources);
  const playlists = ["v.m3u8", "a.m3u8"].map((path) => [path, hls("")] as const);
  const resources = merge(media, new Map([...playlists, ["index.m3u8", hls(entry)]]));
  const harness = await openEntry(() => engine, resources, "index.m3u8");
  let readings = 0;
  for (const [name, { lines }] of Object.entries(tracks)) {
    const [init, ...all] = lines;
    harness.site.answer(`${name}.m3u8`, async (response, serve) => {
      const first = firstAt((readings += 1));
      if (first === null) {
        response.writeHead(503).end();
        return;
      }
      const listed = [`#EXT-X-MEDIA-SEQUENCE:${first}`, init!, ...all.slice(2 * first)];
      harness.site.resources.set(`${name}.m3u8`, hls(mediaPlaylist(listed, readings > 8 && !isEndless)));
      await serve();
    });
  }
  return harness;
}

describe.concurrent("live HLS with separate audio", () => {
  it("begins with one segment of both although its window moves between two readings", async () => {
    await using harness = await openLive((reading) => (reading === 1 ? 0 : 1));
    const { path, warnings } = await harness.download();
    expect(warnings).toEqual([]);
    const { streams } = await probe(path);
    expect(streams.find(({ kind }) => kind === "video")?.frames).toBe(25 * (segments - 1));
  });

  it("is recorded as it was first read if its playlists then fail for a while", async () => {
    await using harness = await openLive((reading) => (reading > 2 && reading < 20 ? null : 0));
    const { path, warnings } = await harness.download();
    expect(warnings).toEqual([]);
    const { streams } = await probe(path);
    expect(streams.find(({ kind }) => kind === "video")?.frames).toBe(25 * segments);
  });

  it("is recorded no longer than ranges need, which start with the recording", async () => {
    await using harness = await openLive(() => 0, true);
    const ranges = [
      { startS: 0.2, endS: 0.6 },
      { startS: 1, endS: 1.6 },
    ];
    const { path, duration, warnings } = await harness.download({ ranges });
    expect(warnings).toEqual([]);
    expect(duration).toBeCloseTo(1, 2);
    const { streams } = await probe(path);
    expect(streams.map(({ kind }) => kind)).toEqual(["video", "audio"]);
  });

  it("has all that it lists if its window does not move", async () => {
    await using harness = await openLive(() => 0);
    const { path, warnings } = await harness.download();
    expect(warnings).toEqual([]);
    const { streams } = await probe(path);
    expect(streams.find(({ kind }) => kind === "video")?.frames).toBe(25 * segments);
  });
});
