import { describe, expect, it } from "vitest";
import { jsonLd, pageUrl, resolveFrom, resolvePage } from "./page/saved-client.ts";

const video = (name: string, more: object = {}) => ({
  "@type": "VideoObject",
  name,
  duration: `PT${name.length}S`,
  contentUrl: `https://cdn.example.com/${name}.mp4`,
  ...more,
});
const others = ["a", "bb", "ccc", "dddd"].map((name) => video(name));

describe("of several videos on a page", () => {
  it("the main entity is taken", async () => {
    const page = { "@type": "WebPage", video: others, mainEntity: video("otters") };
    expect(await resolvePage(jsonLd(page))).toMatchObject({ title: "otters", duration: 6 });
  });

  it.each([
    ["URL", { url: pageUrl }],
    ["@id", { "@id": pageUrl }],
    ["mainEntityOfPage", { mainEntityOfPage: { "@type": "WebPage", "@id": `${pageUrl}#page` } }],
    ["player", { embedUrl: "https://player.example.com/9" }],
  ])("the one with the page's %s is taken", async (_, more) => {
    const card = `<meta name="twitter:player" content="https://player.example.com/9">`;
    const info = await resolvePage(card + jsonLd(...others, video("otters", more)));
    expect(info).toMatchObject({ title: "otters", duration: 6 });
  });

  it("the one with the page's title is taken", async () => {
    const title = `<meta property="og:title" content="OTTERS">`;
    expect((await resolvePage(title + jsonLd(...others, video("otters")))).duration).toBe(6);
  });

  it("the first of a few is taken, and none of many", async () => {
    expect((await resolvePage(jsonLd(...others.slice(0, 2)))).duration).toBe(1);
    expect(await resolvePage(jsonLd(...others))).toMatchObject({
      media_type: "none",
      duration: null,
      embed: null,
      formats: [],
    });
  });

  it.each([
    ["a list", { "@type": "ItemList", itemListElement: [{ "@type": "ListItem", item: video("otters") }] }],
    ["comments", { "@type": "WebPage", comment: [video("otters")] }],
    ["a trailer", { "@type": "Movie", trailer: video("otters") }],
  ])("none is taken from %s", async (_, block) => {
    expect((await resolvePage(jsonLd(block))).media_type).toBe("none");
  });

  it("none is taken on a site's front page, unless the page is about it", async () => {
    const url = "https://example.com/";
    const promo = { [url]: { body: jsonLd(video("promo")) } };
    expect((await resolveFrom(promo, url)).media_type).toBe("none");
    const main = { [url]: { body: jsonLd({ "@type": "WebPage", mainEntity: video("promo") }) } };
    expect((await resolveFrom(main, url)).duration).toBe(5);
  });
});

describe("on an article with a video", () => {
  const article = {
    "@type": "NewsArticle",
    headline: "Otters return",
    author: [{ "@type": "Person", name: "Ada" }],
    datePublished: "2024-03-02T00:00:00Z",
    publisher: { "@type": "Organization", name: "The Example" },
    video: video("clip", {
      author: { name: "Agency" },
      uploadDate: "2024-03-01",
      description: "A clip.",
      thumbnailUrl: "https://img.example.com/clip.jpg",
    }),
  };
  const og = `<meta property="og:title" content="Otters are back">
    <meta property="og:image" content="https://img.example.com/article.jpg">`;

  it("title, author and image are the article's; duration, date and file the video's", async () => {
    const info = await resolvePage(og + jsonLd(article));
    expect(info).toMatchObject({
      media_type: "video",
      site_name: "The Example",
      title: "Otters are back",
      uploader: "Ada",
      duration: 4,
      uploaded_at: "2024-03-01",
      formats: [{ url: "https://cdn.example.com/clip.mp4" }],
    });
    expect(info.thumbnails.map(({ url }) => url)).toEqual([
      "https://img.example.com/article.jpg",
      "https://img.example.com/clip.jpg",
    ]);
  });

  it("the page's own article takes precedence over one that it links to", async () => {
    const teaser = { "@type": "NewsArticle", headline: "Elsewhere", author: "Bob" };
    const own = { ...article, mainEntityOfPage: pageUrl };
    expect(await resolvePage(jsonLd(teaser, own))).toMatchObject({
      title: "Otters return",
      uploader: "Ada",
    });
  });
});

describe("if vocabularies disagree", () => {
  it("each field follows its own order of precedence", async () => {
    const info = await resolvePage(`<html lang="de"><link rel="canonical" href="/canonical">
      <meta property="og:url" content="/shared"><meta property="og:locale" content="en_US">
      <meta property="og:title" content="og"><meta property="og:description" content="og">
      <meta property="og:video:duration" content="7"><meta name="twitter:title" content="twitter">
      <meta name="description" content="html"><meta name="author" content="html">
      <div itemscope itemtype="https://schema.org/VideoObject"><meta itemprop="name" content="microdata">
      <meta itemprop="duration" content="PT8S"><meta itemprop="description" content="microdata"></div>
      ${jsonLd({ "@type": "VideoObject", name: "json-ld", author: "json-ld" })}`);
    expect(info).toMatchObject({
      webpage_url: "https://video.example.com/canonical",
      language: "de",
      title: "json-ld",
      description: "microdata",
      duration: 8,
      uploader: "json-ld",
      sources: {
        webpage_url: "html",
        language: "html",
        title: "json-ld",
        description: "microdata",
        duration: "microdata",
        uploader: "json-ld",
      },
    });
  });
});
