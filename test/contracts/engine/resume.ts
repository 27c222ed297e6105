import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { layFiles, mediaPlaylist } from "../../media/hls.ts";
import { readMedium, readRendition } from "../../media/rendition.ts";
import { hls, merge, resource, type Resources } from "../../media/resources.ts";
import { type OpenEngine, showEntry, type EngineHarness } from "./harness.ts";

const stream = layFiles("ts", readRendition("high.m2t"), "ts");
const film = resource("video/mp4", readMedium("index-first.mp4"));

/** What an abort leaves behind, and what a later download makes of it. */
export function describeResume(open: OpenEngine): void {
  describe.concurrent("after an abort", () => {
    it("rejects within a second with the signal's reason", async () => {
      await using trial = await showStream(open);
      const { reason, ms } = await abortWithout(trial, "ts/3.ts");
      expect(reason).toBe("enough");
      expect(ms).toBeLessThan(1_000);
    });

    it("fetches nothing if it was aborted before it began", async () => {
      await using trial = await showStream(open);
      await expect(trial.download({}, AbortSignal.abort("never"))).rejects.toBe("never");
      expect(trial.site.asked).toEqual([]);
    });

    it("fetches only the segment that is missing", async () => {
      await using trial = await showStream(open);
      await abortWithout(trial, "ts/3.ts");
      const before = trial.site.asked.length;
      trial.site.answer("ts/3.ts", (_response, serve) => serve());
      const { sha256 } = await trial.download();
      expect(segments(trial, before)).toEqual(["ts/3.ts"]);
      expect(sha256).toBe(await sha256Anew(open));
    });

    it("fetches only what is missing also where the addresses have got new tokens", async () => {
      await using trial = await showStream(open);
      const { site } = trial;
      await abortWithout(trial, "ts/3.ts");
      const before = site.asked.length;
      site.answer("ts/3.ts", (_response, serve) => serve());
      const lines = stream.lines.map((line) => (line.endsWith(".ts") ? `${line}?token=2` : line));
      site.resources.set("index.m3u8", hls(mediaPlaylist(lines)));
      await trial.download();
      expect(segments(trial, before)).toEqual(["ts/3.ts"]);
    });

    it("begins anew where the playlist has become another", async () => {
      await using trial = await showStream(open);
      await abortWithout(trial, "ts/3.ts");
      const other = layFiles("low", readRendition("low.m2t"), "ts");
      const text = hls(mediaPlaylist(other.lines));
      trial.site.resources = merge(other.resources, new Map([["index.m3u8", text]]));
      expect(await trial.download()).toMatchObject({ width: 96, height: 54 });
    });

    it("goes on in the middle of a file", async () => {
      await using trial = await showEntry(open, new Map([["film.mp4", film]]), "film.mp4");
      await abortInTheMiddle(trial);
      const { sha256 } = await trial.download();
      expect(trial.site.asked.at(-1)?.range).toBe(`bytes=${half}-`);
      expect(sha256).toBe(hashOf(film.body));
    });

    it("begins a file anew that has changed, and splices nothing", async () => {
      await using trial = await showEntry(open, new Map([["film.mp4", film]]), "film.mp4");
      await abortInTheMiddle(trial);
      const other = resource("video/mp4", readMedium("index-last.mp4"));
      trial.site.resources.set("film.mp4", other);
      expect((await trial.download()).sha256).toBe(hashOf(other.body));
    });
  });
}

function showStream(open: OpenEngine): Promise<EngineHarness> {
  return showEntry(open, streamResources(), "index.m3u8");
}

function streamResources(): Resources {
  return merge(stream.resources, new Map([["index.m3u8", hls(mediaPlaylist(stream.lines))]]));
}

/** Aborts a download that has got everything but `path`, which is never answered. */
async function abortWithout(
  trial: EngineHarness,
  path: string,
): Promise<{ reason: unknown; ms: number }> {
  const { site } = trial;
  const total = [...stream.resources].reduce(
    (sum, [each, { body }]) => sum + (each === path ? 0 : body.length),
    0,
  );
  site.answer(path, () => {});
  return abortAt(trial, trial.whenThere(total));
}

const half = film.body.length >> 1;

/** Aborts the download of a file that has come to its half. */
async function abortInTheMiddle(trial: EngineHarness): Promise<void> {
  const { site } = trial;
  let held: ServerResponse | undefined;
  site.answer("film.mp4", (response) => {
    held = response;
    response.writeHead(200, {
      "content-type": film.type,
      "content-length": film.body.length,
      etag: `"${createHash("sha1").update(film.body).digest("hex")}"`,
      "accept-ranges": "bytes",
    });
    response.write(film.body.subarray(0, half));
  });
  await abortAt(trial, trial.whenThere(half));
  held?.destroy();
  site.answer("film.mp4", (_response, serve) => serve());
}

async function abortAt(trial: EngineHarness, moment: Promise<void>) {
  const aborting = new AbortController();
  const ended = trial.download({}, aborting.signal).then(
    () => "it went on",
    (reason: unknown) => reason,
  );
  await Promise.race([moment, ended]);
  const begun = performance.now();
  aborting.abort("enough");
  return { reason: await ended, ms: performance.now() - begun };
}

function segments({ site }: EngineHarness, from: number): string[] {
  return site.asked
    .slice(from)
    .map(({ path }) => path)
    .filter((path) => path !== "index.m3u8");
}

async function sha256Anew(open: OpenEngine): Promise<string> {
  await using trial = await showStream(open);
  return (await trial.download()).sha256;
}

function hashOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
