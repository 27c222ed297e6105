import { Value } from "@sinclair/typebox/value";
import { describe, expect, it } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";
import { PageInfo } from "../../src/model/page-info.ts";
import { createPageResolver } from "./page/local-reader.ts";
import { describeResolver } from "../contracts/resolver.ts";
import { createSavedClient, fixedNow, jsonLd, pageUrl, resolveFrom, resolvePage } from "./page/saved-client.ts";

const fullPage = `<!doctype html><html lang="en-GB"><head>
<title>Otters &amp; more — Example Tube</title>
<link rel="canonical" href="/watch/1">
<meta property="og:site_name" content="Example Tube">
<meta property="og:title" content="Otters">
<meta property="og:image" content="https://img.example.com/og.jpg">
<meta property="og:video:url" content="https://video.example.com/embed/1">
<meta property="og:video:type" content="text/html">
${jsonLd({
  "@context": "https://schema.org",
  "@type": "VideoObject",
  name: "Otters at play",
  description: "Two otters.",
  duration: "PT1M30S",
  uploadDate: "2024-03-01T12:00:00+02:00",
  author: { "@type": "Person", name: "Ada", url: "https://video.example.com/u/ada" },
  thumbnailUrl: ["https://img.example.com/1.jpg"],
  contentUrl: "https://cdn.example.com/1.mp4",
  interactionStatistic: [
    { "@type": "InteractionCounter", interactionType: "https://schema.org/LikeAction", userInteractionCount: "12" },
    { "@type": "InteractionCounter", interactionType: { "@type": "WatchAction" }, userInteractionCount: 3456 },
  ],
})}</head><body></body></html>`;

describeResolver("the page resolver", true, (options) =>
  createPageResolver({ client: createHttpClient(options), pageMaxBytes: 1e6 }),
);

describe("the page resolver", () => {
  it("returns what a page states, and the vocabulary of each value", async () => {
    const info = await resolvePage(fullPage);
    expect(Value.Check(PageInfo, info)).toBe(true);
    expect(info).toMatchObject({
      url: pageUrl,
      webpage_url: pageUrl,
      site_name: "Example Tube",
      media_type: "video",
      title: "Otters at play",
      description: "Two otters.",
      language: "en-GB",
      duration: 90,
      uploaded_at: "2024-03-01T10:00:00Z",
      uploader: "Ada",
      uploader_url: "https://video.example.com/u/ada",
      embed: { url: "https://video.example.com/embed/1", width: null, height: null },
      view_count: 3456,
      like_count: 12,
      resolver: "page",
      fetched_at: "2024-05-06T07:08:09.000Z",
    });
    expect(info.thumbnails.map(({ url }) => url)).toEqual([
      "https://img.example.com/1.jpg",
      "https://img.example.com/og.jpg",
    ]);
    expect(info.formats).toMatchObject([
      { format_id: "https-mp4", url: "https://cdn.example.com/1.mp4", protocol: "https", ext: "mp4" },
    ]);
    expect(info.sources).toMatchObject({
      title: "json-ld",
      webpage_url: "html",
      site_name: "og",
      language: "html",
      embed: "og",
      formats: "json-ld",
    });
  });

  it("names a source for every field with a value, and for no other", async () => {
    const { sources, ...info } = await resolvePage(fullPage);
    const isFilled = (value: unknown) =>
      value !== null && !(typeof value === "object" && Object.keys(value ?? {}).length === 0);
    const filled = Object.entries(info)
      .filter(([name, value]) => isFilled(value) && !["url", "media_type", "resolver", "fetched_at"].includes(name))
      .map(([name]) => name);
    expect(Object.keys(sources).toSorted()).toEqual(filled.toSorted());
  });

  it("returns nulls and empty lists for a page that states nothing", async () => {
    const info = await resolvePage("<p>nothing</p>");
    expect(Value.Check(PageInfo, info)).toBe(true);
    expect(info).toMatchObject({
      webpage_url: pageUrl,
      media_type: "none",
      title: null,
      duration: null,
      embed: null,
      formats: [],
      thumbnails: [],
      tags: [],
    });
    expect([info.subtitles, info.sources]).toEqual([{}, {}]);
  });

  it("resolves URLs against the final URL, or the page's <base>", async () => {
    const body = `<link rel="canonical" href="canonical"><meta property="og:image" content="//img.example.com/a.png">`;
    const moved = { [pageUrl]: { url: "https://m.example.com/v/2?x=1", body } };
    expect(await resolveFrom(moved)).toMatchObject({
      url: pageUrl,
      webpage_url: "https://m.example.com/v/canonical",
      thumbnails: [{ url: "https://img.example.com/a.png" }],
    });
    const based = await resolvePage(`<base href="/deep/er/"><link rel=canonical href="../c">`);
    expect(based.webpage_url).toBe("https://video.example.com/deep/c");
  });

  it("ignores URLs that are not http or https", async () => {
    const info = await resolvePage(`
      <link rel="canonical" href="javascript:alert(1)">
      <meta property="og:image" content="data:image/png;base64,AAAA">
      <meta name="twitter:player" content="ftp://files.example.com/x">
      <meta property="og:video" content="https://user:secret@cdn.example.com/1.mp4">
      <video src="blob:https://video.example.com/1"></video>`);
    expect(info).toMatchObject({ webpage_url: pageUrl, thumbnails: [], embed: null, formats: [] });
  });

  it("rejects with the client's error if the page cannot be fetched", async () => {
    const error = new ServiceError("upstream_status", "404");
    await expect(resolveFrom({ [pageUrl]: error })).rejects.toBe(error);
  });

  it("rejects with the signal's reason if it is aborted during the oEmbed request", async () => {
    const abort = new AbortController();
    const client = createSavedClient({
      [pageUrl]: { body: `<link rel="alternate" type="application/json+oembed" href="/oembed">` },
    });
    const get = client.get;
    client.get = (url, options) => {
      if (url.pathname === "/oembed") abort.abort(new Error("enough"));
      return get(url, options);
    };
    const resolver = createPageResolver({ client, pageMaxBytes: 1e6, now: fixedNow });
    await expect(resolver.resolve(new URL(pageUrl), { signal: abort.signal })).rejects.toThrow("enough");
  });
});
