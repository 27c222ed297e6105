import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import type { WantedSubtitles } from "../../src/engines/engine.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry, type EngineHarness } from "../contracts/engine/harness.ts";
import { buildNestedMkv } from "../media/hostile-mkv.ts";
import { layEncrypted, layFiles, mediaPlaylist } from "../media/hls.ts";
import { readMedium, readRendition } from "../media/rendition.ts";
import { hls, merge, resource } from "../media/resources.ts";
import { downloadsOf } from "../process/child-processes.ts";

const local = { allowNetworks: ["127.0.0.1/32"] };
const stream = layFiles("ts", readRendition("high.m2t"), "ts");
const film = resource("video/mp4", readMedium("index-first.mp4"));

describe("a download that needs too much memory", () => {
  it("fails alone and is not retryable", async () => {
    const engine = createNativeEngine({ ...local, limits: { heapMiB: 40 } });
    const endless = `#EXTM3U\n#EXT-X-TARGETDURATION:1\n${"#EXTINF:1,\na?\n".repeat(199_000)}`;
    const resources = new Map([
      ["index.m3u8", hls(endless)],
      ["film.mp4", film],
    ]);
    await using small = await openEntry(() => engine, resources, "film.mp4");
    await using large = await openEntry(() => engine, resources, "index.m3u8");
    small.site.answer("film.mp4", async (_response, serve) => {
      await failed;
      await serve();
    });
    const failed = large.download().catch((error: unknown) => error);
    expect(await small.download()).toMatchObject({ size: film.body.length });
    expect(await failed).toMatchObject({ code: "internal", retryable: false });
    expect(await failed).toMatchObject({ message: expect.stringContaining("40 MiB of memory") });
    await using next = await openEntry(() => engine, resources, "film.mp4");
    expect(await next.download()).toMatchObject({ size: film.body.length });
    await engine.close();
  });
});

describe("a download whose file takes too long to read", () => {
  it("fails for good, and the next one does not", async () => {
    const engine = createNativeEngine({ ...local, limits: { workMs: 3_000 } });
    const nested = resource("video/x-matroska", buildNestedMkv(100_000));
    await using hostile = await openEntry(() => engine, new Map([["nested.mkv", nested]]), "nested.mkv");
    const message = expect.stringMatching(/: reading the file took over 3 s, the limit for 1200036 bytes$/);
    const fail = () => hostile.download().catch((error: unknown) => error);
    let error = await fail();
    // It got hardly any processor time.
    while (error instanceof ServiceError && error.code === "unavailable") error = await fail();
    expect(error).toMatchObject({ code: "upstream_invalid", retryable: false, message });
    await using next = await openEntry(() => engine, new Map([["film.mp4", film]]), "film.mp4");
    expect(await next.download()).toMatchObject({ size: film.body.length });
    await engine.close();
  });
});

describe.skipIf(process.platform !== "linux")("a process that starts", () => {
  it("has options with which V8 takes the modules of Node as they were compiled", async () => {
    const engine = createNativeEngine(local);
    engine.prepare!();
    await vi.waitUntil(() => downloadsOf(process.pid).length > 0, 60_000);
    const command = readFileSync(`/proc/${downloadsOf(process.pid)[0]}/cmdline`, "utf8").split("\0");
    await engine.close();
    const options = command.filter((word) => word.startsWith("--") && !process.execArgv.includes(word));
    expect(options).toContain("--max-old-space-size=512");
    // V8 refuses what it compiled under another tag.
    const script = 'process.stdout.write(`${require("node:v8").cachedDataVersionTag()}`)';
    const tagWith = (flags: string[]) => execFileSync(process.execPath, [...flags, "-e", script], { encoding: "utf8" });
    expect(tagWith(options)).toBe(tagWith([]));
  });
});

describe("a process at the end of its idle time", () => {
  it("gets no more work while it ends", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const engine = createNativeEngine(local);
    await using harness = await openEntry(() => engine, new Map([["film.mp4", film]]), "film.mp4");
    await harness.download();
    vi.advanceTimersByTime(10_000);
    const folder = await harness.newFolder();
    expect(await harness.download({ folder })).toMatchObject({ size: film.body.length });
    await engine.close();
  });
});

describe("a process that has much memory after a download", () => {
  const english = (url: string): WantedSubtitles[] => {
    const listings = [{ url, ext: "vtt", name: null }];
    return [{ language: "en", name: "", role: "subtitles", automatic: false, listings }];
  };

  it.each([
    ["gets no other one if that had subtitles", 1, english, [1, 0, 1, 0]],
    ["gets others if that had none: buffers of media are used again", 1, () => [], [1]],
    ["gets others up to the limit", 10_000, english, [1]],
  ])("%s", async (_, keptMiB, subtitlesAt, expected) => {
    const counts: number[] = [];
    const observer = {
      onProcesses: (count: number) => counts.push(count),
      onDeath: vi.fn<() => void>(),
      onBlocked: () => {},
    };
    const engine = createNativeEngine({ ...local, limits: { keptMiB }, observer });
    const text = resource("text/vtt", Buffer.from("WEBVTT\n\n00:01.000 --> 00:02.000\nOne\n"));
    await using harness = await openEntry(
      () => engine,
      new Map([
        ["film.mp4", film],
        ["en.vtt", text],
      ]),
      "film.mp4",
    );
    const subtitles = subtitlesAt(harness.site.url("en.vtt"));
    for (const downloads of [1, 2]) {
      await harness.download({ subtitles, folder: await harness.newFolder() });
      await vi.waitUntil(() => counts.length >= Math.min(2 * downloads, expected.length), 60_000);
    }
    expect(counts).toEqual(expected);
    expect(observer.onDeath).not.toHaveBeenCalled();
    await engine.close();
  });
});

describe("a closed engine", () => {
  it("fails running downloads and refuses new ones", async () => {
    const engine = createNativeEngine(local);
    await using harness = await openEntry(() => engine, new Map([["film.mp4", film]]), "film.mp4");
    harness.site.answer("film.mp4", () => {});
    const running = harness.download().catch((error: unknown) => error);
    await harness.site.until(() => harness.site.asked.length === 1);
    await Promise.all([engine.close(), engine.close()]);
    expect(await running).toMatchObject({ code: "unavailable", retryable: true });
    await expect(harness.download()).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("an abort", () => {
  const engine = createNativeEngine(local);
  afterAll(() => engine.close());
  const open = () => engine;
  const key = { ext: "ts", hasIv: true, rotation: 10 };
  const locked = layEncrypted("crypt", readRendition("high.m2t"), key);
  const resources = merge(
    stream.resources,
    locked.resources,
    new Map([
      ["film.mp4", film],
      ["index.m3u8", hls(mediaPlaylist(stream.lines))],
      ["locked.m3u8", hls(mediaPlaylist(locked.lines))],
      ["live.m3u8", hls(mediaPlaylist(stream.lines, false))],
    ]),
  );

  for (const [what, entry, path] of [
    ["a playlist", "index.m3u8", "index.m3u8"],
    ["a key", "locked.m3u8", "crypt/0.key"],
    ["a segment", "index.m3u8", "ts/2.ts"],
    ["a file", "film.mp4", "film.mp4"],
  ] as const) {
    it(`during the request for ${what} closes the connection`, async () => {
      await using harness = await openEntry(open, resources, entry);
      const asked = Promise.withResolvers<ServerResponse>();
      harness.site.answer(path, asked.resolve);
      const { aborting, ended } = begin(harness);
      const response = await asked.promise;
      const closed = new Promise((resolve) => response.once("close", resolve));
      aborting.abort("enough");
      expect(await ended).toBe("enough");
      await closed;
      harness.site.answer(path, (_response, serve) => serve());
      expect(await harness.download()).toMatchObject({ ext: "mp4" });
    });
  }

  it("between two reloads of a live playlist ends the wait", async () => {
    await using harness = await openEntry(open, resources, "live.m3u8");
    const { aborting, ended } = begin(harness);
    const readings = () => harness.site.asked.filter(({ path }) => path === "live.m3u8").length;
    await harness.site.until(() => readings() === 2);
    aborting.abort("enough");
    expect(await ended).toBe("enough");
    expect(readings()).toBe(2);
  });
});

function begin(harness: EngineHarness): { aborting: AbortController; ended: Promise<unknown> } {
  const aborting = new AbortController();
  const ended = harness.download({}, aborting.signal).then(
    () => "not aborted",
    (reason: unknown) => reason,
  );
  return { aborting, ended };
}
