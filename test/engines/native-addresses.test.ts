import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native.ts";
import { showEntry, type EngineHarness } from "../contracts/engine/harness.ts";
import { layFiles, mediaPlaylist, multivariant } from "../media/hls.ts";
import { probe } from "../media/probe.ts";
import { readMedium, readRendition } from "../media/rendition.ts";
import { hls, merge, resource, type Resource, type Resources } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: "127.0.0.1/32", idleTimeoutMs: 500 });
afterAll(() => engine.close());
const open = () => engine;

const stream = layFiles("ts", readRendition("high.m2t"), "ts");
const playlist = hls(mediaPlaylist(stream.lines));

/** The download of an address of which nothing is known but that it is a medium. */
const download = (trial: EngineHarness) => {
  const { format } = trial.job;
  return trial.download({ format: { ...format, ext: null } });
};

describe.concurrent("an address that tells nothing of what it is", () => {
  it("is read as HLS where an HLS playlist is there", async () => {
    const resources = merge(stream.resources, new Map([["watch", playlist]]));
    await using trial = await showEntry(open, resources, "watch");
    const { streams } = await probe((await download(trial)).path);
    expect(streams).toMatchObject([{ frames: 150 }, { frames: 283 }]);
  });

  it("is read as DASH where an MPD is there, and refused if that is live", async () => {
    const text = '\n<?xml version="1.0"?><MPD type="dynamic"><Period/></MPD>';
    const mpd = resource("application/octet-stream", text);
    await using trial = await showEntry(open, new Map([["watch", mpd]]), "watch");
    await expect(download(trial)).rejects.toMatchObject({ code: "live_stream" });
  });

  it("is taken as a file where a file is there", async () => {
    const film = resource("video/mp4", readMedium("index-first.mp4"));
    await using trial = await showEntry(open, new Map([["watch", film]]), "watch");
    expect(await download(trial)).toMatchObject({ ext: "mp4", size: film.body.length });
  });
});

describe.concurrent("a multivariant playlist that nobody has read yet", () => {
  it("gives the sound alone from where it is apart", async () => {
    const sound = layFiles("en", readRendition("audio-en.m4s"), "m4s");
    const pictures = layFiles("high", readRendition("video.m4s"), "m4s");
    const master = multivariant(
      [{ uri: "high.m3u8", bandwidth: 110_000, codecs: "avc1.64000c,mp4a.40.2", audio: "sound" }],
      [{ group: "sound", language: "en", uri: "en.m3u8", isDefault: true }],
    );
    const resources = merge(
      sound.resources,
      pictures.resources,
      new Map([
        ["index.m3u8", hls(master)],
        ["en.m3u8", hls(mediaPlaylist(sound.lines))],
        ["high.m3u8", hls(mediaPlaylist(pictures.lines))],
      ]),
    );
    await using trial = await showEntry(open, resources, "index.m3u8");
    const made = await trial.download({ audioOnly: true });
    expect((await probe(made.path)).streams).toMatchObject([{ kind: "audio" }]);
    expect(trial.site.asked.some(({ path }) => path.startsWith("high/"))).toBe(false);
  });
});

describe.concurrent("no query of an address is in the error", () => {
  const itself = { uri: "index.m3u8?token=secret", bandwidth: 1, codecs: "avc1.64000c" };
  const cases: readonly (readonly [name: string, body: Resource | null])[] = [
    ["lists itself", hls(multivariant([itself]))],
    ["is none", hls("<!doctype html><title>Please log in</title>")],
    ["is not there", null],
  ];
  for (const [name, body] of cases) {
    it(`of a playlist that ${name}`, async () => {
      const resources: Resources = new Map(body && [["index.m3u8", body]]);
      await using trial = await showEntry(open, resources, "index.m3u8");
      const url = trial.site.url("index.m3u8?token=secret");
      const format = { ...trial.job.format, url, manifest_url: url };
      const error = await trial.download({ format }).catch((failure: unknown) => failure);
      expect(error).toMatchObject({ message: expect.stringContaining("/index.m3u8") });
      expect(error).toMatchObject({ message: expect.not.stringContaining("secret") });
    });
  }
});
