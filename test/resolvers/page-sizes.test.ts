import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { PageInfo } from "../../src/model/page-info.ts";
import type { ResolveContext } from "../../src/resolvers/resolver.ts";
import { createPageResolver } from "./page/local-reader.ts";
import { readMedium } from "../media/rendition.ts";
import { localClient } from "../net/client.ts";
import { startUpstream, type Upstream } from "../net/upstream.ts";

type Respond = (request: IncomingMessage, response: ServerResponse) => unknown;

interface TestSite extends Upstream {
  requests: IncomingMessage[];
  resolve(linkTimeoutMs?: number, forDownload?: boolean, needs?: Partial<ResolveContext>): Promise<PageInfo>;
}

/** Starts a site whose page, at `/watch`, is `html`; other paths are 404 unless `routes` respond. */
async function startSite(html: string, routes: Record<string, Respond>): Promise<TestSite> {
  const requests: IncomingMessage[] = [];
  const upstream = await startUpstream((request, response) => {
    const path = request.url ?? "";
    requests.push(request);
    const pageHeaders = { "content-type": "text/html", "set-cookie": "seen=1; Path=/" };
    if (path === "/watch") response.writeHead(200, pageHeaders).end(html);
    else if (routes[path] === undefined) response.writeHead(404).end("<h1>Not found</h1>");
    else void routes[path](request, response);
  });
  const client = localClient();
  return {
    ...upstream,
    requests,
    resolve(linkTimeoutMs = 60_000, forDownload = false, needs = {}) {
      const resolver = createPageResolver({ client, pageMaxBytes: 1e6, linkTimeoutMs });
      const { signal } = new AbortController();
      const context = { signal, forDownload, ...needs };
      return resolver.resolve(upstream.url("/watch"), context);
    },
  };
}

const video = (...paths: string[]) =>
  `<title>Otters</title><video>${paths.map((path) => `<source src="${path}">`).join("")}</video>`;
const sent =
  (body: Buffer | string, type: string, headers: Record<string, string> = {}): Respond =>
  (_request, response) =>
    response.writeHead(200, { "content-type": type, ...headers }).end(body);

/** Responds with the requested range. */
const ranged =
  (body: Buffer, type = "video/mp4"): Respond =>
  ({ headers }, response) => {
    const [, start = "0", last = ""] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "") ?? [];
    const end = Math.min(Number(last), body.length - 1);
    const contentRange = `bytes ${start}-${end}/${body.length}`;
    response.writeHead(206, { "content-type": type, "content-range": contentRange });
    response.end(body.subarray(Number(start), end + 1));
  };

const mp4 = readMedium("index-first.mp4");
const large = Buffer.concat([mp4, Buffer.alloc(3_000_000)]);

describe("a file that the page states nothing of", () => {
  it.each([
    ["index-first.mp4", "video/mp4", "avc1.64000c", "mp4a.40.2", 6],
    ["h264-aac.mkv", "video/x-matroska", "avc1.64000c", "mp4a.40.2", 6.021],
    ["vp9-opus.webm", "video/webm", "vp9", "opus", 6.008],
    ["vp8-vorbis.webm", "video/webm", "vp8", "vorbis", 6.003],
  ])("is described by its first bytes: %s", async (name, mime_type, vcodec, acodec, duration) => {
    const body = readMedium(name);
    const site = await startSite(video("/film"), {
      "/film": ranged(body, "application/octet-stream"),
    });
    // Nothing but the element tells that this is a medium.
    const info = await site.resolve();
    const pixels = { width: 160, height: 90, fps: 25 };
    const sizes = { filesize: body.length, filesize_approx: null };
    expect(info.formats).toMatchObject([{ mime_type, vcodec, acodec, ...pixels, ...sizes }]);
    expect(info).toMatchObject({ duration, sources: { duration: "media", formats: "html" } });
    expect(site.requests).toHaveLength(2);
  });

  it("is asked for as the page's player asks for it: with Referer, cookies, and one range", async () => {
    const site = await startSite(video("/1.mp4"), { "/1.mp4": ranged(large) });
    expect((await site.resolve()).formats).toMatchObject([{ filesize: large.length, width: 160 }]);
    expect(site.requests[1]?.headers).toMatchObject({
      range: "bytes=0-65535",
      referer: site.url("/watch").href,
      cookie: "seen=1",
    });
  });

  it("keeps what the page states, and its id", async () => {
    const html =
      '<meta property="og:video" content="/1.mp4"><meta property="og:video:height" content="720">' +
      '<meta property="og:video:width" content="1280"><meta property="video:duration" content="7">' +
      '<meta property="og:video:type" content="video/x-m4v">';
    const site = await startSite(html, { "/1.mp4": ranged(mp4) });
    const info = await site.resolve();
    const stated = { format_id: "https-720p-m4v", width: 1280, height: 720 };
    expect(info.formats).toMatchObject([
      { ...stated, mime_type: "video/x-m4v", filesize: mp4.length, vcodec: "avc1.64000c" },
    ]);
    expect(info).toMatchObject({ duration: 7, sources: { duration: "og" } });
  });

  it("has its own width if the page states one alone, which may be that of the player", async () => {
    const html = `<title>Otters</title><script>new Player({url: "/1.mp4", width: 600})</script>`;
    const site = await startSite(html, { "/1.mp4": ranged(mp4) });
    expect((await site.resolve()).formats).toMatchObject([{ width: 160, height: 90 }]);
  });

  it("has only a size if its index comes later", async () => {
    const film = Buffer.concat([mp4.subarray(0, 32), mdat(200_000), mp4.subarray(32)]);
    const site = await startSite(video("/1.mp4"), { "/1.mp4": ranged(film) });
    expect((await site.resolve()).formats).toMatchObject([
      { filesize: film.length, width: null, vcodec: null, acodec: null },
    ]);
  });

  it("is one of at most three, which are then listed best first", async () => {
    const low = readMedium("video-low.m4s");
    const site = await startSite(video("/0.mp4", "/1.mp4", "/2.mp4", "/3.mp4"), {
      "/0.mp4": ranged(low),
      "/1.mp4": ranged(mp4),
      "/2.mp4": ranged(mp4),
      "/3.mp4": ranged(mp4),
    });
    const { formats } = await site.resolve();
    const requested = site.requests.map(({ url = "" }) => url);
    expect(new Set(requested)).toEqual(new Set(["/watch", "/0.mp4", "/1.mp4", "/2.mp4"]));
    const path = (name: string) => site.url(name).href;
    expect(formats.map(({ url, height, filesize }) => [url, height, filesize])).toEqual([
      [path("/1.mp4"), 90, mp4.length],
      [path("/2.mp4"), 90, mp4.length],
      [path("/0.mp4"), 54, low.length],
      [path("/3.mp4"), null, null],
    ]);
  });
});

describe("a download", () => {
  const paths = ({ requests }: TestSite) => new Set(requests.map(({ url = "" }) => url));

  it("requests files of unknown height only, which /info requests first", async () => {
    const heights = [1080, 720, 480];
    const sources = heights.map((height) => `<source src="/${height}.mp4" label="${height}p">`);
    const html = `<video>${sources.join("")}<source src="/any.mp4"></video>`;
    const files = ["/any.mp4", ...heights.map((height) => `/${height}.mp4`)];
    const site = await startSite(html, Object.fromEntries(files.map((path) => [path, ranged(mp4)])));
    const expected = [...heights, 90];
    const download = await site.resolve(undefined, true);
    expect(download.formats.map(({ height }) => height)).toEqual(expected);
    expect(paths(site)).toEqual(new Set(["/watch", "/any.mp4"]));
    const info = await site.resolve();
    expect(info.formats.map(({ height }) => height)).toEqual(expected);
    expect(paths(site)).toEqual(new Set(["/watch", "/any.mp4", "/1080.mp4", "/720.mp4"]));
  });

  it("asks for a file once: its size is learned then", async () => {
    const site = await startSite(video("/1.mp4"), { "/1.mp4": ranged(mp4) });
    expect((await site.resolve(undefined, true)).formats).toHaveLength(1);
    expect(paths(site)).toEqual(new Set(["/watch"]));
  });

  it("that is limited to a height learns that of the only file", async () => {
    const site = await startSite(video("/1.mp4"), { "/1.mp4": ranged(mp4) });
    const { formats } = await site.resolve(undefined, true, { needsHeights: true });
    expect(formats).toMatchObject([{ height: 90 }]);
  });

  it("that prefers codecs learns those of several files", async () => {
    const sources = [1080, 720].map((height) => `<source src="/${height}.mp4" label="${height}p">`).join("");
    const files = { "/1080.mp4": ranged(mp4), "/720.mp4": ranged(mp4) };
    const site = await startSite(`<video>${sources}</video>`, files);
    const { formats } = await site.resolve(undefined, true, { needsCodecs: true });
    expect(formats.map(({ vcodec }) => vcodec)).toEqual(["avc1.64000c", "avc1.64000c"]);
    const single = await startSite(video("/1080.mp4"), files);
    await single.resolve(undefined, true, { needsCodecs: true });
    expect(paths(single)).toEqual(new Set(["/watch"]));
  });

  it("chooses between files of unknown height as the page's record lists them", async () => {
    const site = await startSite(video("/low.mp4", "/high.mp4"), {
      "/low.mp4": ranged(readMedium("video-low.m4s")),
      "/high.mp4": ranged(mp4),
    });
    for (const forDownload of [false, true]) {
      const { formats } = await site.resolve(undefined, forDownload);
      expect(formats.map(({ height }) => height)).toEqual([90, 54]);
    }
  });
});

function mdat(size: number): Buffer {
  const box = Buffer.alloc(size);
  box.writeUInt32BE(size);
  box.write("mdat", 4);
  return box;
}

describe("a server of files", () => {
  const resolveWith = async (respond: Respond, linkTimeoutMs?: number) => {
    const site = await startSite(video("/1.mp4"), { "/1.mp4": respond });
    const info = await site.resolve(linkTimeoutMs);
    expect(info).toMatchObject({ title: "Otters", formats: [{ url: site.url("/1.mp4").href }] });
    return { format: info.formats[0] };
  };

  it("that knows no ranges sends no more than it takes", async () => {
    let written = 0;
    const { format } = await resolveWith(async (_request, response) => {
      const size = 1 << 30;
      response.writeHead(200, { "content-type": "video/mp4", "content-length": `${size}` });
      response.write(mp4);
      for (const part = Buffer.alloc(1 << 20); written < size && !response.destroyed;) {
        if (!response.write(part)) {
          const open = new AbortController();
          const events = ["drain", "close"].map((name) => once(response, name, open));
          await Promise.race(events).finally(() => open.abort());
        }
        written += part.length;
      }
    });
    expect(format).toMatchObject({ filesize: 1 << 30, width: 160, vcodec: "avc1.64000c" });
    expect(written).toBeLessThan(100 << 20);
  });

  it("that sends an endless stream has no size", async () => {
    const closed = Promise.withResolvers<void>();
    const { format } = await resolveWith((_request, response) => {
      response.once("close", closed.resolve);
      response.writeHead(200, { "content-type": "audio/mpeg" }).write("ID3");
    });
    expect(format).toMatchObject({ filesize: null, filesize_approx: null });
    await closed.promise;
  });

  const lies: [string, Respond][] = [
    ["a Content-Range that ends after the file", partial("bytes 0-65535/10")],
    ["a Content-Range that begins elsewhere", partial("bytes 5-65540/1000000")],
    ["a Content-Range without a size", partial("bytes 0-65535/*")],
    ["no Content-Range", partial(undefined)],
    ["a content coding", sent(gzipSync(mp4), "video/mp4", { "content-encoding": "gzip" })],
    ["a page", sent("<!doctype html><title>Log in</title>", "text/html")],
    ["a page as a video", sent("<!doctype html><title>Log in</title>", "video/mp4")],
    ["403", (_request, response) => response.writeHead(403).end()],
    ["500", (_request, response) => response.writeHead(500).end()],
    ["a broken connection", (_request, response) => response.destroy()],
    ["nothing", sent("", "video/mp4")],
  ];
  it.each(lies)("that sends %s leaves the format as the page states it", async (_, respond) => {
    const { format } = await resolveWith(respond);
    expect(format).toMatchObject({ filesize: null, ext: "mp4", format_id: "https-mp4" });
  });

  it("that is silent does not keep the page longer than the time for what it leads to", async () => {
    const { format } = await resolveWith(() => undefined, 200);
    expect(format).toMatchObject({ filesize: null });
  });

  it("in a private network is not asked", async () => {
    const site = await startSite(video("http://127.1.2.3:9/1.mp4", "http://10.0.0.1/1.mp4"), {});
    expect((await site.resolve()).formats.map(({ filesize }) => filesize)).toEqual([null, null]);
  });
});

function partial(contentRange: string | undefined): Respond {
  return (_request, response) => {
    const stated = contentRange === undefined ? {} : { "content-range": contentRange };
    response.writeHead(206, { "content-type": "video/mp4", ...stated }).end(mp4);
  };
}

describe("the size of a stream", () => {
  const hlsType = "application/vnd.apple.mpegurl";
  const master =
    "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=2000000,AVERAGE-BANDWIDTH=1600000,RESOLUTION=1280x720\nhigh.m3u8\n" +
    "#EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360\nlow.m3u8\n";
  const playlist = (end: string) => `#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\n0.ts\n#EXTINF:4,\n1.ts\n${end}`;
  const sizes = ({ formats }: PageInfo) => formats.map(({ filesize_approx }) => filesize_approx);

  it("is bit rate × duration, of HLS by the average or the peak / 1.1; the playlist of the best tells the duration", async () => {
    const site = await startSite(video("/main.m3u8"), {
      "/main.m3u8": sent(master, hlsType),
      "/high.m3u8": sent(playlist("#EXT-X-ENDLIST"), hlsType),
    });
    const info = await site.resolve();
    expect(sizes(info)).toEqual([2_000_000, 909_091]);
    expect(info).toMatchObject({ duration: 10, live_status: "not_live" });
    expect(info.sources).toMatchObject({ duration: "manifest", live_status: "manifest" });
    expect(info.formats[0]).toMatchObject({ format_id: "hls-2000", tbr: 2000, filesize: null });
    expect(info.formats[0]).not.toHaveProperty("averageTbr");
    expect(site.requests.map(({ url }) => url)).toEqual(["/watch", "/main.m3u8", "/high.m3u8"]);
  });

  it("takes no request if the page states the duration", async () => {
    const html = `<meta property="video:duration" content="20">${video("/main.m3u8")}`;
    const site = await startSite(html, { "/main.m3u8": sent(master, hlsType) });
    expect(sizes(await site.resolve())).toEqual([4_000_000, 1_818_182]);
    expect(site.requests.map(({ url }) => url)).toEqual(["/watch", "/main.m3u8"]);
  });

  it("is unknown while it is live", async () => {
    const site = await startSite(video("/main.m3u8"), {
      "/main.m3u8": sent(master, hlsType),
      "/high.m3u8": sent(playlist(""), hlsType),
    });
    const info = await site.resolve();
    expect(sizes(info)).toEqual([null, null]);
    expect(info).toMatchObject({ duration: null, live_status: "is_live" });
  });

  it("is unknown if the duration is", async () => {
    const site = await startSite(video("/main.m3u8"), { "/main.m3u8": sent(master, hlsType) });
    expect(sizes(await site.resolve())).toEqual([null, null]);
  });

  it("is that of its byte ranges in a media playlist", async () => {
    const ranges = "#EXTM3U\n#EXTINF:6,\n#EXT-X-BYTERANGE:1000@0\na.ts\n#EXTINF:4,\n#EXT-X-BYTERANGE:500\na.ts\n";
    const site = await startSite(video("/a.m3u8"), {
      "/a.m3u8": sent(`${ranges}#EXT-X-ENDLIST`, hlsType),
    });
    expect(sizes(await site.resolve())).toEqual([1500]);
  });

  it("is that of the file if a DASH Representation is one file", async () => {
    const body = readMedium("single-video.mp4");
    const mpd =
      '<MPD mediaPresentationDuration="PT10S"><Period><AdaptationSet mimeType="video/mp4">' +
      '<Representation id="v" bandwidth="800000" codecs="avc1.64000c" height="360"><BaseURL>v.mp4</BaseURL></Representation>' +
      '</AdaptationSet><AdaptationSet mimeType="audio/mp4"><SegmentTemplate media="$Number$.m4s" duration="1"/>' +
      '<Representation id="a" bandwidth="80000" codecs="mp4a.40.2"/></AdaptationSet></Period></MPD>';
    const site = await startSite(video("/main.mpd"), {
      "/main.mpd": sent(mpd, "application/dash+xml"),
      "/v.mp4": ranged(body),
    });
    expect((await site.resolve()).formats).toMatchObject([
      { format_id: "dash-v", height: 360, filesize: body.length, filesize_approx: null },
      { format_id: "dash-a", filesize: null, filesize_approx: 100_000 },
    ]);
  });
});
