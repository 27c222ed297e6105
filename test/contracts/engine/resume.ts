import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { layFiles, mediaPlaylist } from "../../media/hls.ts";
import { readMedium, readRendition } from "../../media/rendition.ts";
import { hls, merge, resource } from "../../media/resources.ts";
import { openStream } from "./faults.ts";
import { type OpenEngine, openEntry, type EngineHarness } from "./harness.ts";
import { startTicks } from "../ticks.ts";

const stream = layFiles("ts", readRendition("high.m2t"), "ts");
const film = resource("video/mp4", readMedium("index-first.mp4"));

/** A download after an aborted one. */
export function describeResume(open: OpenEngine): void {
  describe.concurrent("after an abort", () => {
    it("rejects within a second with the signal's reason", async () => {
      await using harness = await openStream(open);
      const { reason, ms } = await abortWithout(harness, "ts/3.ts");
      expect(reason).toBe("enough");
      expect(ms).toBeLessThan(1_000);
    });

    it("fetches nothing if the signal was aborted before", async () => {
      await using harness = await openStream(open);
      await expect(harness.download({}, AbortSignal.abort("never"))).rejects.toBe("never");
      expect(harness.site.asked).toEqual([]);
    });

    it("fetches only the missing segment", async () => {
      await using harness = await openStream(open);
      await abortWithout(harness, "ts/3.ts");
      const before = harness.site.asked.length;
      harness.site.answer("ts/3.ts", (_response, serve) => serve());
      const { sha256 } = await harness.download();
      expect(segments(harness, before)).toEqual(["ts/3.ts"]);
      expect(sha256).toBe(await sha256WithoutAbort(open));
    });

    it("fetches only the missing segment even if the URLs have new tokens", async () => {
      await using harness = await openStream(open);
      const { site } = harness;
      await abortWithout(harness, "ts/3.ts");
      const before = site.asked.length;
      site.answer("ts/3.ts", (_response, serve) => serve());
      const lines = stream.lines.map((line) => (line.endsWith(".ts") ? `${line}?token=2` : line));
      site.resources.set("index.m3u8", hls(mediaPlaylist(lines)));
      await harness.download();
      expect(segments(harness, before)).toEqual(["ts/3.ts"]);
    });

    it("fetches no init section again even if the URLs have new tokens", async () => {
      const fmp4 = layFiles("mp4", readRendition("muxed.m4s"), "m4s");
      const playlist = (token: number) => {
        const lines = fmp4.lines.map((line) => line.replace(/\.(m4s|mp4)\b/, `$&?token=${token}`));
        return new Map([["index.m3u8", hls(mediaPlaylist(lines))]]);
      };
      await using harness = await openEntry(open, merge(fmp4.resources, playlist(1)), "index.m3u8");
      const { site } = harness;
      site.answer("mp4/3.m4s", (response) => response.writeHead(403).end());
      await expect(harness.download()).rejects.toMatchObject({ upstreamStatus: 403 });
      site.answer("mp4/3.m4s", (_response, serve) => serve());
      site.resources = merge(site.resources, playlist(2));
      const before = site.asked.length;
      await harness.download();
      const asked = site.asked.slice(before).map(({ path }) => path);
      expect(asked).toContain("mp4/3.m4s");
      expect(asked).not.toContain("mp4/init.mp4");
    });

    it("restarts if the playlist has changed", async () => {
      await using harness = await openStream(open);
      await abortWithout(harness, "ts/3.ts");
      const other = layFiles("low", readRendition("low.m2t"), "ts");
      const text = hls(mediaPlaylist(other.lines));
      harness.site.resources = merge(other.resources, new Map([["index.m3u8", text]]));
      expect(await harness.download()).toMatchObject({ width: 96, height: 54 });
    });

    it("resumes in the middle of a file", async () => {
      await using harness = await openEntry(open, new Map([["film.mp4", film]]), "film.mp4");
      await abortInTheMiddle(harness);
      const { sha256 } = await harness.download();
      expect(harness.site.asked.at(-1)?.range).toBe(`bytes=${half}-`);
      expect(sha256).toBe(hashOf(film.body));
    });

    it("restarts a file that has changed, without splicing", async () => {
      await using harness = await openEntry(open, new Map([["film.mp4", film]]), "film.mp4");
      await abortInTheMiddle(harness);
      const other = resource("video/mp4", readMedium("index-last.mp4"));
      harness.site.resources.set("film.mp4", other);
      expect((await harness.download()).sha256).toBe(hashOf(other.body));
    });
  });
}

/** Aborts a download that has fetched everything but `path`, which gets no response. */
async function abortWithout(harness: EngineHarness, path: string): Promise<{ reason: unknown; ms: number }> {
  const { site } = harness;
  const total = [...stream.resources].reduce((sum, [each, { body }]) => sum + (each === path ? 0 : body.length), 0);
  site.answer(path, () => {});
  return abortAt(harness, harness.whenDownloaded(total));
}

const half = film.body.length >> 1;

/** Aborts the download of a file after its first half. */
async function abortInTheMiddle(harness: EngineHarness): Promise<void> {
  const { site } = harness;
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
  await abortAt(harness, harness.whenDownloaded(half));
  held?.destroy();
  site.answer("film.mp4", (_response, serve) => serve());
}

async function abortAt(harness: EngineHarness, moment: Promise<void>) {
  const aborting = new AbortController();
  const ended = harness.download({}, aborting.signal).then(
    () => "not aborted",
    (reason: unknown) => reason,
  );
  await Promise.race([moment, ended]);
  const elapsedMs = startTicks();
  aborting.abort("enough");
  return { reason: await ended, ms: elapsedMs() };
}

function segments({ site }: EngineHarness, from: number): string[] {
  return site.asked
    .slice(from)
    .map(({ path }) => path)
    .filter((path) => path !== "index.m3u8");
}

async function sha256WithoutAbort(open: OpenEngine): Promise<string> {
  await using harness = await openStream(open);
  return (await harness.download()).sha256;
}

function hashOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
