import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import type { DownloadFormat } from "../../../src/model/page-info.ts";
import { layEncrypted, layFiles, mediaPlaylist, multivariant } from "../../media/hls.ts";
import { probe } from "../../media/probe.ts";
import { readMedium, readRendition } from "../../media/rendition.ts";
import { hls, merge, resource, type Resources } from "../../media/resources.ts";
import { startSite } from "../../media/site.ts";
import { formatAt, type OpenEngine, openEntry } from "./harness.ts";

const film = resource("video/mp4", readMedium("index-first.mp4"));
const filmHash = createHash("sha256").update(film.body).digest("hex");
const locked = layEncrypted("crypt", readRendition("high.m2t"), {
  ext: "ts",
  hasIv: true,
  rotation: 2,
});
const master = multivariant([{ uri: "media.m3u8", bandwidth: 1, codecs: "avc1.64000c" }]);
const stream = merge(
  locked.resources,
  new Map([
    ["index.m3u8", hls(master)],
    ["media.m3u8", hls(mediaPlaylist(locked.lines))],
  ]),
);

/** What sites demand of the requests for a format. */
export function describeDemands(open: OpenEngine): void {
  describe.concurrent("every request for a format", () => {
    const kinds: readonly (readonly [string, Resources, string])[] = [
      ["a file", new Map([["film.mp4", film]]), "film.mp4"],
      ["manifests, keys and segments", stream, "index.m3u8"],
    ];
    for (const [kind, resources, entry] of kinds) {
      it(`has the page as its Referer: ${kind}`, async () => {
        await using harness = await openEntry(open, resources, entry);
        const { site, job } = harness;
        site.accepts = ({ headers }) => headers.referer === job.pageUrl;
        await harness.download();
      });

      it(`has the format's User-Agent, Referer and cookies: ${kind}`, async () => {
        await using harness = await openEntry(open, resources, entry);
        const { site, job } = harness;
        site.accepts = ({ headers }) =>
          headers.referer === "https://player.example.com/7" &&
          headers["user-agent"] === "Player/1.0" &&
          headers.cookie === "session=a b; id=7";
        const http_headers = {
          Referer: "https://player.example.com/7",
          "User-Agent": "Player/1.0",
          Range: "bytes=5-",
          Host: "elsewhere.example.com",
        };
        const cookies = `session="a b"; Domain=127.0.0.1; Path=/; Expires=32503680000; id=7; Path=/`;
        const format: DownloadFormat = { ...job.format, http_headers, cookies };
        await harness.download({ format });
      });
    }

    it.each(["film.mp4", "index.m3u8"])("has the cookies that responses have set meanwhile: %s", async (entry) => {
      await using harness = await openEntry(open, merge(stream, new Map([["film.mp4", film]])), entry);
      const { site, job } = harness;
      const given = entry === "film.mp4" ? entry : "media.m3u8";
      site.answer(given, (response, serve, { headers }) => {
        if (headers.cookie === "a=1; b=3; c=4") return serve();
        return response.writeHead(302, { location: `/${given}`, "set-cookie": ["b=3; Path=/", "c=4; Path=/"] }).end();
      });
      await harness.download({ format: { ...job.format, cookies: "a=1; Path=/; b=2; Path=/" } });
      const sent = site.asked.map(({ headers }) => headers.cookie);
      const isGiven = site.asked.findIndex(({ path }) => path === given);
      expect(new Set(sent.slice(0, isGiven + 1))).toEqual(new Set(["a=1; b=2"]));
      expect(new Set(sent.slice(isGiven + 1))).toEqual(new Set(["a=1; b=3; c=4"]));
    });

    it("has the cookies of separate audio only where they apply", async () => {
      const resources = new Map(
        ["single-video.mp4", "single-audio.mp4"].map((name) => {
          return [name, resource("video/mp4", readMedium(name))];
        }),
      );
      await using harness = await openEntry(open, resources, "single-video.mp4");
      const { site, job } = harness;
      const format = { ...job.format, vcodec: "avc1.64000c", acodec: "none" };
      const audio: DownloadFormat = {
        ...formatAt(site.url("single-audio.mp4")),
        vcodec: "none",
        cookies: "for=audio; Domain=127.0.0.1; Path=/single-audio.mp4",
      };
      await harness.download({ format, audio });
      const cookieOf = new Map(site.asked.map(({ path, headers }) => [path, headers.cookie]));
      expect(cookieOf.get("single-audio.mp4")).toBe("for=audio");
      expect(cookieOf.get("single-video.mp4")).toBeUndefined();
    });

    it("has no cookies and no authorization at another origin, redirects included", async () => {
      const secrets = ({ headers }: IncomingMessage) => [headers.cookie, headers.authorization];
      const seen: unknown[] = [];
      await using other = await startSite(new Map(stream));
      other.accepts = (request) => seen.push(...secrets(request)) > 0;
      await using harness = await openEntry(open, stream, "index.m3u8");
      const { site, job } = harness;
      const own: unknown[] = [];
      site.accepts = (request) => own.push(...secrets(request)) > 0;
      site.answer("crypt/1.ts", (response) => {
        response.writeHead(302, { location: other.url("crypt/1.ts") }).end();
      });
      const lines = locked.lines.map((line) => {
        return line === "crypt/2.ts" ? other.url("crypt/2.ts") : line;
      });
      site.resources.set("media.m3u8", hls(mediaPlaylist(lines)));
      const format: DownloadFormat = {
        ...job.format,
        http_headers: { Authorization: "Bearer secret", Referer: "https://page.example.com/" },
        cookies: "session=secret; Domain=.cookies.example.com; Path=/",
      };
      await harness.download({ format });
      expect(other.asked.map(({ path }) => path).toSorted()).toEqual(["crypt/1.ts", "crypt/2.ts"]);
      expect(other.asked.map(({ headers }) => headers.referer)).toEqual(Array(2).fill("https://page.example.com/"));
      expect(new Set(seen)).toEqual(new Set([undefined]));
      expect(new Set(own)).toEqual(new Set([undefined, "Bearer secret"]));
    });

    it("is refused if a header of the format would end the field", async () => {
      await using harness = await openEntry(open, new Map([["film.mp4", film]]), "film.mp4");
      const http_headers = { Referer: "https://a.example\r\nCookie: secret" };
      const format = { ...harness.job.format, http_headers };
      await expect(harness.download({ format })).rejects.toMatchObject({
        code: "upstream_invalid",
        message: expect.not.stringContaining("secret"),
      });
      expect(harness.site.asked).toEqual([]);
    });
  });

  describe.concurrent("a file that is served in chunks", () => {
    const chunk = 10_000;
    const openChunks = async () => {
      const harness = await openEntry(open, new Map([["film.mp4", film]]), "film.mp4");
      const format: DownloadFormat = { ...harness.job.format, http_chunk_size: chunk };
      return { harness, format };
    };
    const ranges = (size: number, from = 0) =>
      Array.from({ length: Math.ceil((size - from) / chunk) }, (_, i) => {
        return `bytes=${from + i * chunk}-${from + (i + 1) * chunk - 1}`;
      });

    it("is requested in ranges of at most that size", async () => {
      const { harness, format } = await openChunks();
      await using _ = harness;
      expect((await harness.download({ format })).sha256).toBe(filmHash);
      expect(harness.site.asked.map(({ range }) => range)).toEqual(ranges(film.body.length));
    });

    it("is complete even if the server sends no validators", async () => {
      const { harness, format } = await openChunks();
      await using _ = harness;
      const { length } = film.body;
      harness.site.answer("film.mp4", (response, _serve, { headers }) => {
        const [from = 0, to = 0] =
          /(\d+)-(\d+)/
            .exec(headers.range ?? "")
            ?.slice(1)
            .map(Number) ?? [];
        const body = film.body.subarray(from, to + 1);
        const range = `bytes ${from}-${from + body.length - 1}/${length}`;
        response.writeHead(206, { "content-range": range, "content-length": body.length }).end(body);
      });
      expect((await harness.download({ format })).sha256).toBe(filmHash);
    });

    it("resumes with a chunk after an abort", async () => {
      const { harness, format } = await openChunks();
      await using _ = harness;
      const { site } = harness;
      const third = `bytes=${2 * chunk}-${3 * chunk - 1}`;
      const aborting = new AbortController();
      site.answer("film.mp4", (_response, serve, { headers }) => {
        if (headers.range !== third || aborting.signal.aborted) return serve();
        return aborting.abort("enough");
      });
      const stopped = harness.download({ format }, aborting.signal);
      await expect(stopped).rejects.toBe("enough");
      const before = site.asked.length;
      expect((await harness.download({ format })).sha256).toBe(filmHash);
      expect(site.asked.slice(before).map(({ range }) => range)).toEqual(ranges(film.body.length, 2 * chunk));
    });
  });

  describe.concurrent("fragments without a manifest", () => {
    const video = layFiles("video", readRendition("video.m4s"), "m4s");
    const audio = layFiles("audio", readRendition("audio-en.m4s"), "m4s");
    const resources = merge(video.resources, audio.resources);
    const fragmentsIn = (folder: string, url: (path: string) => string) =>
      [...resources.keys()]
        .filter((path) => path.startsWith(folder))
        .map((path) => ({ url: url(path), duration: path.includes("init") ? null : 1 }));

    it("are downloaded with separate audio, and only the missing ones after an abort", async () => {
      await using harness = await openEntry(open, new Map(resources), "none.mpd");
      const { site, job } = harness;
      const format: DownloadFormat = {
        ...job.format,
        acodec: "none",
        fragments: fragmentsIn("video", site.url),
        http_headers: { Referer: "https://page.example.com/" },
      };
      const sound: DownloadFormat = {
        ...job.format,
        format_id: "sound",
        vcodec: "none",
        fragments: fragmentsIn("audio", site.url),
      };
      const aborting = new AbortController();
      site.answer("video/3.m4s", () => {});
      const stopped = harness.download({ format, audio: sound }, aborting.signal);
      const others = [...resources].filter(([path]) => path !== "video/3.m4s");
      const there = harness.whenDownloaded(others.reduce((sum, [, { body }]) => sum + body.length, 0));
      await Promise.race([there, stopped.catch(() => {})]);
      aborting.abort("enough");
      await expect(stopped).rejects.toBe("enough");
      site.answer("video/3.m4s", (_response, serve) => serve());
      const before = site.asked.length;
      const { path } = await harness.download({ format, audio: sound });
      expect(site.asked.slice(before).map((each) => each.path)).toEqual(["video/3.m4s"]);
      expect((await probe(path)).streams).toMatchObject([{ kind: "video", frames: 150 }, { kind: "audio" }]);
      const referers = site.asked.filter((each) => each.path.startsWith("video"));
      expect(new Set(referers.map(({ headers }) => headers.referer))).toEqual(new Set(["https://page.example.com/"]));
    });

    it("must be URLs that may be fetched", async () => {
      await using harness = await openEntry(open, new Map(), "none.mpd");
      const fragments = [{ url: "file:///etc/passwd", duration: null }];
      const format: DownloadFormat = { ...harness.job.format, fragments };
      await expect(harness.download({ format })).rejects.toMatchObject({ code: "address_blocked" });
      await expect(harness.download({ format: { ...format, fragments: [] } })).rejects.toMatchObject({
        code: "format_unavailable",
      });
    });
  });
}
