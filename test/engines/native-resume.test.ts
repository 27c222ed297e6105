import { readdir, readlink, writeFile } from "node:fs/promises";
import { join as joinPath } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { download } from "../../src/engines/native/download.ts";
import { readFileChunks } from "../../src/engines/native/source-stream.ts";
import { remux } from "../../src/engines/native/remux.ts";
import { createNativeEngine } from "../../src/engines/native.ts";
import { createHttpClient } from "../../src/net/http-client.ts";
import { showEntry } from "../contracts/engine/harness.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readMedium, readRendition } from "../media/rendition.ts";
import { hls, merge, resource } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: "127.0.0.1/32", idleTimeoutMs: 5_000 });
afterAll(() => engine.close());
const open = () => engine;

describe("what was fetched", () => {
  it("stays where a download is stopped while its file is read back", async () => {
    const film = resource("video/mp4", readMedium("index-first.mp4"));
    await using trial = await showEntry(open, new Map([["film.mp4", film]]), "film.mp4");
    const client = createHttpClient({ allowNetworks: "127.0.0.1/32" });
    const stopping = new AbortController();
    const stopped = download(trial.job, {
      client,
      concurrentFragments: 2,
      minFreeBytes: 0,
      signal: stopping.signal,
      onProgress: ({ stage }) => stage === "processing" && stopping.abort("the service stops"),
    });
    await expect(stopped).rejects.toBe("the service stops");
    await client.close();
    expect(await trial.download()).toMatchObject({ size: film.body.length });
    expect(trial.site.asked).toHaveLength(1);
  });

  it("is not put together with another quality whose addresses differ in the query alone", async () => {
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
    await using trial = await showEntry(open, resources, "high.m3u8");
    const { site, job } = trial;
    const stopping = new AbortController();
    for (const [path, { body }] of low!.resources) {
      site.answer(path, (response, serve, { url }) => {
        if (url?.endsWith("?q=low") === true) return response.end(body);
        return path === "ts/5.ts" ? undefined : serve();
      });
    }
    const others = [...high!.resources].filter(([path]) => path !== "ts/5.ts");
    const there = trial.whenThere(others.reduce((sum, [, { body }]) => sum + body.length, 0));
    const stopped = trial.download({}, stopping.signal).catch((reason: unknown) => reason);
    await there;
    stopping.abort("enough");
    expect(await stopped).toBe("enough");
    const format = { ...job.format, format_id: "hls-90", url: site.url("low.m3u8") };
    const made = await trial.download({ format });
    await using other = await showEntry(open, low!.resources, "low.m3u8");
    other.site.resources.set("low.m3u8", hls(mediaPlaylist(lines)));
    expect(made.sha256).toBe((await other.download()).sha256);
  });
});

describe("an abort of a remux", () => {
  it.skipIf(process.platform !== "linux")("closes the file that is read", async () => {
    await using trial = await showEntry(open, new Map(), "film.mp4");
    const path = joinPath(trial.job.folder, "film.mp4");
    await writeFile(path, readMedium("index-last.mp4"));
    const stopped = remux({
      main: { name: "main", container: "mp4", path, chunks: readFileChunks(path) },
      audio: null,
      openAudio: null,
      audioOnly: false,
      target: joinPath(trial.job.folder, "result"),
      expectedS: null,
      maxBytes: 1e6,
      signal: AbortSignal.abort("enough"),
    });
    await expect(stopped).rejects.toBe("enough");
    const handles = await readdir("/proc/self/fd");
    const files = await Promise.all(
      handles.map((handle) => readlink(`/proc/self/fd/${handle}`).catch(() => "")),
    );
    expect(files.filter((file) => file.startsWith(trial.job.folder))).toEqual([]);
  });
});
