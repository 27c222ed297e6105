import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import type { GetOptions, HttpClient } from "../../src/net/client.ts";
import { createPageResolver } from "./page/local-reader.ts";
import { createSavedClient, fixedNow, jsonLd, pageUrl, resolvePage } from "./page/saved-client.ts";

const master = `#EXTM3U
#EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360,CODECS="avc1.4d401e,mp4a.40.2"
low.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=2400000,RESOLUTION=1280x720,CODECS="avc1.4d401f,mp4a.40.2"
high.m3u8
`;
const hls = "https://cdn.example.com/1/master.m3u8";
const withHls = jsonLd({ "@type": "VideoObject", name: "Otters", contentUrl: hls });

const rejectWith =
  ({ signal }: GetOptions) =>
  (): Promise<never> =>
    Promise.reject(signal.reason);

describe("manifests that a page names", () => {
  it("are fetched, and their formats listed best first", async () => {
    const info = await resolvePage(withHls, {
      [hls]: { type: "application/vnd.apple.mpegurl", body: master },
    });
    expect(info.formats).toMatchObject([
      { url: "https://cdn.example.com/1/high.m3u8", manifest_url: hls, protocol: "m3u8", height: 720 },
      { url: "https://cdn.example.com/1/low.m3u8", manifest_url: hls, protocol: "m3u8", height: 360 },
    ]);
    expect(info.sources["formats"]).toBe("manifest");
  });

  it.each(["upstream_unreachable", "address_blocked", "upstream_status"] as const)(
    "are listed as one format if they cannot be fetched: %s",
    async (code) => {
      const info = await resolvePage(withHls, { [hls]: new ServiceError(code, "no") });
      expect(info).toMatchObject({
        title: "Otters",
        formats: [{ format_id: "m3u8", url: hls, manifest_url: hls, protocol: "m3u8" }],
        sources: { formats: "json-ld" },
      });
    },
  );

  it("are listed as one format if they take too long", async () => {
    const page = createSavedClient({ [pageUrl]: { body: withHls } });
    const silent: HttpClient = {
      ...page,
      get: (url, options) =>
        url.href === hls ? once(options.signal, "abort").then(rejectWith(options)) : page.get(url, options),
    };
    const resolver = createPageResolver({ client: silent, pageMaxBytes: 1e6, linkTimeoutMs: 20 });
    const info = await resolver.resolve(new URL(pageUrl), { signal: new AbortController().signal });
    expect(info).toMatchObject({ title: "Otters", formats: [{ format_id: "m3u8", url: hls }] });
  });

  it("with a long URL that thousands of formats repeat are cut", async () => {
    const mpd = `https://cdn.example.com/${"a".repeat(8000)}.mpd`;
    const representations = Array.from(
      { length: 2000 },
      (_, n) => `<Representation id="${n}" bandwidth="${n + 1}000" codecs="avc1.4d401e"/>`,
    ).join("");
    const body = `<MPD><Period><AdaptationSet mimeType="video/mp4">${representations}</AdaptationSet></Period></MPD>`;
    const info = await resolvePage(jsonLd({ "@type": "VideoObject", name: "Otters", contentUrl: mpd }), {
      [mpd]: { type: "application/dash+xml", body },
    });
    expect(info.formats[0]?.tbr).toBe(2000);
    expect(info.formats.length).toBeGreaterThan(100);
    expect(JSON.stringify(info).length).toBeLessThan(3_000_000);
  });

  it("are left out if they are something else, with a warning", async () => {
    const info = await resolvePage(withHls, { [hls]: { body: "<h1>Sorry</h1>" } });
    expect(info).toMatchObject({ title: "Otters", formats: [] });
    const message = expect.stringMatching(/cannot read the manifest at .*: an HLS playlist must begin with #EXTM3U/);
    expect(info.warnings).toEqual([{ code: "formats_missing", message, height: null }]);
    expect(info.sources).not.toHaveProperty("formats");
  });

  it("are fetched up to three, and ids are unique", async () => {
    const names = ["a", "b", "c", "d", "e"].map((name) => `https://cdn.example.com/${name}.m3u8`);
    const html = names.map((url) => `<source src="${url}">`).join("");
    const client = createSavedClient({
      [pageUrl]: { body: `<video>${html}</video>` },
      ...Object.fromEntries(names.map((url) => [url, { body: master }])),
    });
    const resolver = createPageResolver({ client, pageMaxBytes: 1e6, now: fixedNow });
    const info = await resolver.resolve(new URL(pageUrl), { signal: new AbortController().signal });
    expect(client.requested.slice(1, 4)).toEqual(names.slice(0, 3));
    // One playlist that they list, for the duration.
    expect(client.requested.slice(4)).toEqual(["https://cdn.example.com/high.m3u8"]);
    expect(info.formats).toHaveLength(3 * 2 + 2);
    expect(new Set(info.formats.map(({ format_id }) => format_id)).size).toBe(8);
  });

  it("have formats with the same ids in each call", async () => {
    const ids = async () => {
      const responses = { [hls]: { body: master } };
      const info = await resolvePage(`${withHls}<video src="/1.mp4"></video>`, responses);
      return info.formats.map(({ format_id }) => format_id);
    };
    expect(await ids()).toEqual(["hls-2400", "hls-800", "https-mp4"]);
    expect(await ids()).toEqual(["hls-2400", "hls-800", "https-mp4"]);
  });
});

describe("oEmbed", () => {
  const link = `<link rel="alternate" type="application/json+oembed" href="/oembed?url=1">`;
  const oembed = "https://video.example.com/oembed?url=1";
  const body = JSON.stringify({
    type: "video",
    version: "1.0",
    title: "Otters (oEmbed)",
    author_name: "Ada",
    author_url: "https://video.example.com/u/ada",
    thumbnail_url: "https://img.example.com/o.jpg",
    width: 480,
    height: 270,
    html: '<iframe src="https://player.example.com/1" width="480" height="270"></iframe>',
  });

  it("fills the fields that the page does not state, and only these", async () => {
    const info = await resolvePage(`<meta property="og:title" content="Otters">${link}`, {
      [oembed]: { type: "application/json", body },
    });
    expect(info).toMatchObject({
      media_type: "video",
      title: "Otters",
      uploader: "Ada",
      uploader_url: "https://video.example.com/u/ada",
      embed: { url: "https://player.example.com/1", width: 480, height: 270 },
      sources: { title: "og", uploader: "oembed", embed: "oembed", thumbnails: "oembed" },
    });
  });

  it("may fail: the page's own fields are returned", async () => {
    for (const response of [new ServiceError("upstream_timeout", "slow"), { body: "no JSON" }]) {
      const info = await resolvePage(`<title>Otters</title>${link}`, { [oembed]: response });
      expect(info).toMatchObject({ title: "Otters", uploader: null });
    }
  });

  it("is not requested if nothing is missing", async () => {
    const html = `${link}<meta property="og:image" content="/1.jpg">${jsonLd({
      "@type": "VideoObject",
      name: "Otters",
      duration: "PT1S",
      author: "Ada",
      embedUrl: "https://player.example.com/1",
    })}`;
    const client = createSavedClient({ [pageUrl]: { body: html } });
    const resolver = createPageResolver({ client, pageMaxBytes: 1e6, now: fixedNow });
    await resolver.resolve(new URL(pageUrl), { signal: new AbortController().signal });
    expect(client.requested).toEqual([pageUrl, "https://player.example.com/1"]);
  });
});
