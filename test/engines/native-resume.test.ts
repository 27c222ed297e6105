import { firstAudio } from "../../src/remux/audio-choice.ts";
import { nothingToAdd } from "../remux/additions.ts";
import { readdir, readlink, writeFile } from "node:fs/promises";
import { join as joinPath } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { download } from "../../src/engines/native/download.ts";
import { readFileChunks } from "../../src/engines/native/sources/source-stream.ts";
import { remux } from "../../src/engines/native/output/remux.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readMedium, readRendition } from "../media/rendition.ts";
import { hls, merge, resource } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());
const open = () => engine;

describe("fetched parts", () => {
  it("are kept if a download is stopped while its file is inspected", async () => {
    const film = resource("video/mp4", readMedium("index-first.mp4"));
    await using harness = await openEntry(open, new Map([["film.mp4", film]]), "film.mp4");
    const client = createHttpClient({ allowNetworks: ["127.0.0.1/32"] });
    const stopping = new AbortController();
    const stopped = download(harness.job, {
      client,
      concurrentFragments: 2,
      minFreeBytes: 0,
      minSpeedBps: 0,
      signal: stopping.signal,
      onProgress: ({ stage }) => stage === "processing" && stopping.abort("the service stops"),
      onWork: () => {},
    });
    await expect(stopped).rejects.toBe("the service stops");
    await client.close();
    expect(await harness.download()).toMatchObject({ size: film.body.length });
    expect(harness.site.asked).toHaveLength(1);
  });

  it("are not used for another quality whose URLs differ only in the query", async () => {
    const [high, low] = ["high.m2t", "low.m2t"].map((name) => {
      return layFiles("ts", readRendition(name), "ts");
    });
    const { lines } = low!;
    const playlist = hls(mediaPlaylist(lines.map((line) => line.replace(/\.ts$/, ".ts?q=low"))));
    const resources = merge(
      high!.resources,
      new Map([
        ["high.m3u8", hls(mediaPlaylist(lines))],
        ["low.m3u8", playlist],
      ]),
    );
    await using harness = await openEntry(open, resources, "high.m3u8");
    const { site, job } = harness;
    const stopping = new AbortController();
    for (const [path, { body }] of low!.resources) {
      site.answer(path, (response, serve, { url }) => {
        if (url?.endsWith("?q=low") === true) return response.end(body);
        return path === "ts/5.ts" ? undefined : serve();
      });
    }
    const others = [...high!.resources].filter(([path]) => path !== "ts/5.ts");
    const there = harness.whenDownloaded(others.reduce((sum, [, { body }]) => sum + body.length, 0));
    const stopped = harness.download({}, stopping.signal).catch((reason: unknown) => reason);
    await there;
    stopping.abort("enough");
    expect(await stopped).toBe("enough");
    const format = { ...job.format, format_id: "hls-90", url: site.url("low.m3u8") };
    const made = await harness.download({ format });
    await using other = await openEntry(open, low!.resources, "low.m3u8");
    other.site.resources.set("low.m3u8", hls(mediaPlaylist(lines)));
    expect(made.sha256).toBe((await other.download()).sha256);
  });
});

describe("an abort of a remux", () => {
  it.skipIf(process.platform !== "linux")("closes the input file", async () => {
    await using harness = await openEntry(open, new Map(), "film.mp4");
    const path = joinPath(harness.job.folder, "film.mp4");
    await writeFile(path, readMedium("index-last.mp4"));
    const source = { name: "main", role: "main", label: { language: null } } as const;
    const stopped = remux({
      streams: [{ ...source, container: "mp4", path, chunks: readFileChunks(path) }],
      openFallback: null,
      audioOnly: false,
      audioChoice: firstAudio,
      target: joinPath(harness.job.folder, "result"),
      expectedS: null,
      maxBytes: 1e6,
      onWritten: () => {},
      additions: nothingToAdd,
      signal: AbortSignal.abort("enough"),
    });
    await expect(stopped).rejects.toBe("enough");
    const handles = await readdir("/proc/self/fd");
    const files = await Promise.all(handles.map((handle) => readlink(`/proc/self/fd/${handle}`).catch(() => "")));
    expect(files.filter((file) => file.startsWith(harness.job.folder))).toEqual([]);
  });
});
