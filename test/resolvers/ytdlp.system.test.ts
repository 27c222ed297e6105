import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { pipeline } from "node:stream/promises";
import { pino } from "pino";
import { Value } from "@sinclair/typebox/value";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type GuardedProxy, openGuardedProxy } from "../../src/net/proxy/guarded-proxy.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";
import { PageInfo } from "../../src/model/page-info.ts";
import { createAutoResolver } from "../../src/resolvers/auto.ts";
import { createPageResolver, createYtDlpResolver } from "./page/local-reader.ts";
import { openYtDlp, type YtDlp } from "../../src/resolvers/ytdlp/yt-dlp.ts";
import { describeResolver } from "../contracts/resolver.ts";
import { startUpstream } from "../net/upstream.ts";
import { installed, missing } from "./ytdlp/installed.ts";

const ytDlpOptions = {
  path: installed?.script ?? "",
  searchPath: process.env["PATH"] ?? "",
  cookiesFile: "",
  concurrency: 2,
  timeoutMs: 60_000,
  logger: pino({ level: "silent" }),
};

describe.skipIf(installed === undefined)(`the yt-dlp resolver with yt-dlp${missing}`, () => {
  let proxy: GuardedProxy;
  let ytDlp: YtDlp | undefined;
  beforeAll(async () => {
    proxy = await openGuardedProxy({ allowNetworks: ["127.0.0.1/32"] });
    ytDlp = await openYtDlp({ ...ytDlpOptions, proxy });
  });
  afterAll(async () => {
    await ytDlp?.close();
    await proxy.close();
  });

  /** Starts a site with these pages and reads the first one. */
  async function readFirst(pages: Record<string, string | Buffer>, forDownload = false) {
    const upstream = await startUpstream(({ url = "" }, response) => {
      const page = pages[url];
      const [, ext = "html"] = /\.(\w+)$/.exec(url) ?? [];
      response.setHeader("content-type", contentTypes[ext] ?? "application/octet-stream");
      response.statusCode = page === undefined ? 404 : 200;
      response.end(page);
    });
    const client = createHttpClient({ allowNetworks: ["127.0.0.1/32"] });
    const resolver = createYtDlpResolver({ ytDlp: ytDlp!, client });
    const url = upstream.url(Object.keys(pages)[0] ?? "/");
    try {
      const info = await resolver.resolve(url, {
        signal: new AbortController().signal,
        forDownload,
      });
      expect([...Value.Errors(PageInfo, info)]).toEqual([]);
      return { info, at: (path: string) => upstream.url(path).href };
    } finally {
      await client.close();
    }
  }

  it("reads a page that states its video in Open Graph alone", async () => {
    const { info, at } = await readFirst({
      "/watch": `<meta property="og:title" content="Otters"><meta property="og:video" content="/1.mp4">
        <meta property="og:image" content="/1.jpg">`,
      "/1.mp4": film,
    });
    expect(info).toMatchObject({
      title: "Otters",
      webpage_url: at("/watch"),
      uploader: null,
      thumbnails: [{ url: at("/1.jpg") }],
      formats: [{ url: at("/1.mp4"), protocol: "https", ext: "mp4" }],
      resolver: "yt-dlp",
      extractor: "Generic",
      extractor_version: ytDlp?.version,
    });
    expect(info.formats[0]?.http_headers).toMatchObject({ Referer: at("/watch") });
  });

  it("reads HLS with separate audio", async () => {
    const { info, at } = await readFirst({
      "/watch": `<title>Otters</title><video src="/main.m3u8"></video>`,
      "/main.m3u8": `#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",URI="audio.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=500000,CODECS="avc1.64001e,mp4a.40.2",RESOLUTION=320x180,AUDIO="a"
video.m3u8`,
      "/audio.m3u8": playlist,
      "/video.m3u8": playlist,
    });
    const manifest_url = at("/main.m3u8");
    expect(info.formats).toMatchObject([
      { url: at("/video.m3u8"), manifest_url, protocol: "m3u8", height: 180, acodec: "none" },
      { url: at("/audio.m3u8"), manifest_url, protocol: "m3u8", vcodec: "none", language: "en" },
    ]);
  });

  it("lists DASH with the ids of our own reader, by which the engine finds them", async () => {
    const { info, at } = await readFirst({
      "/watch": `<title>Otters</title><video src="/main.mpd"></video>`,
      "/main.mpd": mpd,
    });
    expect(info.formats).toMatchObject([
      { format_id: "dash-v", url: at("/main.mpd"), protocol: "dash", height: 180 },
      { format_id: "dash-a", url: at("/main.mpd"), protocol: "dash", vcodec: "none" },
    ]);
  });

  it("lists the entries of a feed", async () => {
    const { info } = await readFirst({
      "/feed.xml": `<?xml version="1.0"?><rss version="2.0"><channel><title>Otters</title>
        <item><title>One</title><link>https://video.example.com/1</link></item>
        <item><title>Two</title><link>https://video.example.com/2</link></item></channel></rss>`,
    });
    expect(info).toMatchObject({
      title: "Otters",
      formats: [],
      entries: [
        { url: "https://video.example.com/1", title: "One", duration: null },
        { url: "https://video.example.com/2", title: "Two", duration: null },
      ],
    });
  });

  it("finds nothing on a page without a video", async () => {
    const { info } = await readFirst({ "/article": "<title>Otters</title><p>No film." });
    expect(info).toMatchObject({ media_type: "none", formats: [], resolver: "yt-dlp" });
  });

  it("names the extractor of a site without a request", async () => {
    const { signal } = new AbortController();
    const resolver = createYtDlpResolver({ ytDlp: ytDlp!, client: createHttpClient({}) });
    const find = (url: string) => resolver.findExtractor(new URL(url), signal);
    expect(await find("https://www.youtube.com/watch?v=aqz-KE-bpKQ")).toBe("youtube");
    expect(await find("https://video.example.com/watch/1")).toBeNull();
    const identify = (url: string) => resolver.identify?.(new URL(url), signal);
    const video = { extractor: "Youtube", id: "aqz-KE-bpKQ" };
    expect(await identify("https://www.youtube.com/watch?v=aqz-KE-bpKQ&t=3")).toEqual(video);
    expect(await identify("https://youtu.be/aqz-KE-bpKQ")).toEqual(video);
    expect(await identify("https://video.example.com/watch/1")).toBeUndefined();
  });
});

describe.skipIf(installed === undefined)(`with yt-dlp${missing}`, () => {
  const shared = createSharedYtDlp();
  afterAll(() => shared.end());

  async function open(options: { allowNetworks: readonly string[]; idleTimeoutMs: number }) {
    const client = createHttpClient(options);
    return { client, ytDlp: createYtDlpResolver({ ytDlp: await shared.open(options), client }) };
  }

  describeResolver(
    "the auto resolver",
    true,
    async (options) => {
      const { client, ytDlp } = await open(options);
      return createAutoResolver({ page: createPageResolver({ client, pageMaxBytes: 1e6 }), ytDlp });
    },
    { readers: ["page", "yt-dlp"] },
  );

  describeResolver("the yt-dlp resolver", true, async (options) => (await open(options)).ytDlp, {
    // It takes the start of a page for a file, and the last redirect for the response.
    codes: { "/cut": "upstream_invalid", "/loop": "upstream_status" },
    followsLinks: false,
  });
});

/**
 * Starts yt-dlp once for all tests that do not close it while it reads a page; each has a proxy of its own. yt-dlp reaches
 * one port only: that of a relay to the proxy.
 */
function createSharedYtDlp() {
  let opened: Promise<YtDlp | undefined> | undefined;
  let proxy: GuardedProxy | undefined;
  let relay: Server | undefined;
  let extractions = 0;

  async function end(): Promise<void> {
    const ytDlp = await opened;
    opened = undefined;
    await ytDlp?.close();
    await proxy?.close();
    relay?.close();
  }

  return {
    end,
    async open(options: { allowNetworks: readonly string[]; idleTimeoutMs: number }): Promise<YtDlp> {
      await proxy?.close();
      proxy = await openGuardedProxy(options);
      relay ??= await openRelay(() => proxy!);
      opened ??= openYtDlp({ ...ytDlpOptions, proxy: forwardTo(() => proxy!, relay) });
      const ytDlp = (await opened)!;
      return {
        version: ytDlp.version,
        unenforced: ytDlp.unenforced,
        findExtractor: (url, signal) => ytDlp.findExtractor(url, signal),
        identify: (url, signal) => ytDlp.identify(url, signal),
        async extract(url, context) {
          extractions += 1;
          try {
            return await ytDlp.extract(url, context);
          } finally {
            extractions -= 1;
          }
        },
        async close() {
          if (extractions > 0) await end();
        },
      };
    },
  };
}

type ProxyPart = Pick<GuardedProxy, "port" | "openRun">;

function forwardTo(current: () => ProxyPart, relay: Server): ProxyPart {
  const { port } = relay.address() as AddressInfo;
  return {
    port,
    openRun(options) {
      const run = current().openRun(options);
      return {
        url: run.url.replace(/\d+$/, `${port}`),
        get error() {
          return run.error;
        },
        close: () => run.close(),
      };
    },
  };
}

/** Opens a port that leads to whichever proxy there is. */
async function openRelay(current: () => ProxyPart): Promise<Server> {
  const relay = createServer((socket) => {
    const far = connect(current().port, "127.0.0.1");
    // A socket that is closed early ends the other.
    for (const [from, to] of [
      [socket, far],
      [far, socket],
    ] as const) {
      pipeline(from, to).catch(() => to.destroy());
    }
  }).unref();
  relay.listen(0, "127.0.0.1");
  await once(relay, "listening");
  return relay;
}

const film = readFileSync(new URL("../media/files/index-first.mp4", import.meta.url));

const contentTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  m3u8: "application/vnd.apple.mpegurl",
  mp4: "video/mp4",
  mpd: "application/dash+xml",
  xml: "application/rss+xml",
};

const playlist = `#EXTM3U
#EXT-X-TARGETDURATION:5
#EXTINF:5,
1.ts
#EXT-X-ENDLIST`;

const mpd = `<MPD type="static" mediaPresentationDuration="PT10S" xmlns="urn:mpeg:dash:schema:mpd:2011"><Period>
<AdaptationSet mimeType="video/mp4" codecs="avc1.64001e"><SegmentTemplate media="$RepresentationID$-$Number$.m4s" initialization="$RepresentationID$.mp4" duration="5"/>
<Representation id="v" bandwidth="500000" width="320" height="180"/></AdaptationSet>
<AdaptationSet mimeType="audio/mp4" codecs="mp4a.40.2"><SegmentTemplate media="$RepresentationID$-$Number$.m4s" initialization="$RepresentationID$.mp4" duration="5"/>
<Representation id="a" bandwidth="64000"/></AdaptationSet></Period></MPD>`;
