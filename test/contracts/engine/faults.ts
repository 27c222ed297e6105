import { describe, expect, it } from "vitest";
import { layEncrypted, layFiles, mediaPlaylist } from "../../media/hls.ts";
import { probe } from "../../media/probe.ts";
import { readMedium, readRendition } from "../../media/rendition.ts";
import { hls, merge, resource } from "../../media/resources.ts";
import type { Answer } from "../../media/site.ts";
import { type OpenEngine, openEntry, type EngineHarness } from "./harness.ts";

const stream = layFiles("ts", readRendition("high.m2t"), "ts");
const segment = "ts/3.ts";

/** A server that fails. */
export function describeFaults(open: OpenEngine): void {
  describe.concurrent("recovers from", () => {
    for (const [name, fault] of passing) {
      it(`a segment that ${name} at the first request`, async () => {
        await using harness = await openStream(open);
        let isFirst = true;
        harness.site.answer(segment, (response, serve, request) => {
          const answer = isFirst ? fault : serve;
          isFirst = false;
          return answer(response, serve, request);
        });
        const { streams } = await probe((await harness.download()).path);
        expect(streams).toMatchObject([{ frames: 150 }, { frames: 283 }]);
      });
    }
  });

  describe.concurrent("fails with the right error for", () => {
    it("a missing segment, at the first response", async () => {
      await using harness = await openStream(open);
      harness.site.resources.delete(segment);
      const error = { code: "upstream_status", upstreamStatus: 404, retryable: false };
      await expect(harness.download()).rejects.toMatchObject(error);
      expect(harness.site.asked.filter(({ path }) => path === segment)).toHaveLength(1);
    });

    it("a segment that always gets 500, retryable", async () => {
      await using harness = await openStream(open);
      harness.site.answer(segment, (response) => response.writeHead(500).end());
      const error = { code: "upstream_status", upstreamStatus: 500, retryable: true };
      await expect(harness.download()).rejects.toMatchObject(error);
      expect(harness.site.asked.filter(({ path }) => path === segment).length).toBeGreaterThan(1);
    });

    it("a file that is shorter than its container states, retryable", async () => {
      const cut = resource("video/mp4", readMedium("index-first.mp4").subarray(0, 30_000));
      await using harness = await openEntry(open, new Map([["film.mp4", cut]]), "film.mp4");
      await expect(harness.download()).rejects.toMatchObject({
        name: "ServiceError",
        code: expect.stringMatching(/^upstream_/),
        retryable: true,
      });
    });

    it("a wrong key", async () => {
      const options = { ext: "ts", hasIv: true, rotation: 10 };
      const locked = layEncrypted("crypt", readRendition("high.m2t"), options);
      const key = resource("application/octet-stream", Buffer.alloc(16, "another key"));
      const text = hls(mediaPlaylist(locked.lines));
      const resources = merge(
        locked.resources,
        new Map([
          ["crypt/0.key", key],
          ["index.m3u8", text],
        ]),
      );
      await using harness = await openEntry(open, resources, "index.m3u8");
      const error = { code: "upstream_invalid", retryable: false };
      await expect(harness.download()).rejects.toMatchObject(error);
    });

    it("a file over the size limit", async () => {
      const film = resource("video/mp4", readMedium("index-first.mp4"));
      await using harness = await openEntry(open, new Map([["film.mp4", film]]), "film.mp4");
      const error = { code: "too_large", retryable: false };
      await expect(harness.download({ maxBytes: 30_000 })).rejects.toMatchObject(error);
    });

    it("segments that together exceed the size limit", async () => {
      await using harness = await openStream(open);
      const error = { code: "too_large", retryable: false };
      await expect(harness.download({ maxBytes: 30_000 })).rejects.toMatchObject(error);
    });
  });
}

const passing: readonly (readonly [name: string, answer: Answer])[] = [
  ["gets 500", (response) => response.writeHead(500).end()],
  ["gets 429 with Retry-After", (response) => response.writeHead(429, { "retry-after": "1" }).end()],
  [
    "is cut off",
    (response) => {
      response.writeHead(200, { "content-length": 11_092 });
      response.write(Buffer.alloc(5_000), () => response.destroy());
    },
  ],
];

/** Opens HLS of several segments. */
export function openStream(open: OpenEngine): Promise<EngineHarness> {
  const text = hls(mediaPlaylist(stream.lines));
  return openEntry(open, merge(stream.resources, new Map([["index.m3u8", text]])), "index.m3u8");
}
