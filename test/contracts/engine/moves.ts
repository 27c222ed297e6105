import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { layFiles, mediaPlaylist } from "../../media/hls.ts";
import { probe } from "../../media/probe.ts";
import { readMedium, readRendition } from "../../media/rendition.ts";
import { hls, merge, resource, type Resources } from "../../media/resources.ts";
import { type OpenEngine, openEntry } from "./harness.ts";

const film = resource("video/mp4", readMedium("index-first.mp4"));
const filmHash = createHash("sha256").update(film.body).digest("hex");

/** A download whose URLs have other paths than those of an earlier run. */
export function describeMoves(open: OpenEngine): void {
  describe.concurrent("after a move to another path", () => {
    /** Everything that a request for `prefix` and a path gets. */
    const moved = (resources: Resources, prefix: string): Resources =>
      new Map([...resources].map(([path, found]) => [`${prefix}/${path}`, found]));

    it("a file is resumed if the server shows that it is the same", async () => {
      await using harness = await openEntry(open, new Map([["a/film.mp4", film]]), "a/film.mp4");
      const { site, job } = harness;
      await abortAfter(harness, "a/film.mp4", 40_000);
      site.resources = new Map([["b/film.mp4", film]]);
      const format = { ...job.format, url: site.url("b/film.mp4") };
      expect((await harness.download({ format })).sha256).toBe(filmHash);
      expect(site.asked.at(-1)?.range).toBe(`bytes=${40_000 - 4096}-`);
    });

    it("a file is restarted if only its validator and length are the same", async () => {
      await using harness = await openEntry(open, new Map([["a/film.mp4", film]]), "a/film.mp4");
      const { site, job } = harness;
      await abortAfter(harness, "a/film.mp4", 40_000);
      const other = Buffer.from(film.body);
      other.writeUInt8(other.readUInt8(39_000) ^ 1, 39_000);
      site.resources = new Map([["b/film.mp4", { ...film, body: other, etag: etagOf(film.body) }]]);
      const format = { ...job.format, url: site.url("b/film.mp4") };
      const { sha256 } = await harness.download({ format });
      expect(sha256).toBe(createHash("sha256").update(other).digest("hex"));
    });

    it("the segments that are there are not fetched whole again", async () => {
      const plain = layFiles("ts", readRendition("high.m2t"), "ts");
      const resources = merge(plain.resources, new Map([["i.m3u8", hls(mediaPlaylist(plain.lines))]]));
      await using harness = await openEntry(open, moved(resources, "a"), "a/i.m3u8");
      const { site, job } = harness;
      site.answer("a/ts/5.ts", (response) => response.writeHead(403).end());
      await expect(harness.download()).rejects.toMatchObject({ upstreamStatus: 403 });
      site.resources = moved(resources, "b");
      const before = site.asked.length;
      const format = { ...job.format, url: site.url("b/i.m3u8"), manifest_url: null };
      const { path } = await harness.download({ format });
      expect((await probe(path)).streams).toMatchObject([{ frames: 150 }, { frames: 283 }]);
      const asked = site.asked.slice(before).filter((each) => each.path.endsWith(".ts"));
      const whole = asked.filter(({ range }) => range === undefined).map((each) => each.path);
      expect(whole).toEqual(["b/ts/5.ts"]);
    });
  });
}

function etagOf(body: Buffer): string {
  return `"${createHash("sha1").update(body).digest("hex")}"`;
}

async function abortAfter(harness: Awaited<ReturnType<typeof openEntry>>, path: string, bytes: number): Promise<void> {
  harness.site.answer(path, (response) => {
    response.writeHead(200, {
      "content-type": film.type,
      "content-length": film.body.length,
      etag: etagOf(film.body),
    });
    response.write(film.body.subarray(0, bytes));
  });
  const aborting = new AbortController();
  const stopped = harness.download({}, aborting.signal);
  await Promise.race([harness.whenDownloaded(bytes), stopped.catch(() => {})]);
  aborting.abort("enough");
  await expect(stopped).rejects.toBe("enough");
}
