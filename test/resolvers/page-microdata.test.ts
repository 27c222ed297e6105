import { describe, expect, it } from "vitest";
import { resolvePage } from "./page/saved-client.ts";

const open = `<div itemscope itemtype="https://schema.org/VideoObject">`;

describe("microdata", () => {
  it("takes values from the attribute or text of each element", async () => {
    const info = await resolvePage(`${open}
      <h1 itemprop="name">Otters <b>at</b> play &amp; work</h1>
      <meta itemprop="duration" content="PT1M">
      <time itemprop="uploadDate" datetime="2024-03-01">1 March</time>
      <img itemprop="thumbnailUrl" src="/t.jpg">
      <link itemprop="embedURL" href="/embed/1">
      <video itemprop="contentUrl" src="/1.mp4"></video>
      <data itemprop="interactionCount" value="77">77 views</data>
      <p itemprop="author" itemscope itemtype="https://schema.org/Person">
        <a itemprop="url" href="/u/ada"><span itemprop="name">Ada</span></a></p>
      </div>`);
    expect(info).toMatchObject({
      media_type: "video",
      title: "Otters at play & work",
      duration: 60,
      uploaded_at: "2024-03-01",
      thumbnails: [{ url: "https://video.example.com/t.jpg" }],
      embed: { url: "https://video.example.com/embed/1" },
      formats: [{ url: "https://video.example.com/1.mp4" }],
      view_count: 77,
      uploader: "Ada",
      uploader_url: "https://video.example.com/u/ada",
    });
    expect(info.sources).toMatchObject({ title: "microdata", duration: "microdata" });
  });

  it("takes content on any element, and a link's text for a name", async () => {
    const info = await resolvePage(`${open}<link itemprop="name" content="Otters">
      <span itemprop="duration" content="PT2M"></span><a itemprop="author" href="/u/ada">Ada</a></div>`);
    expect(info).toMatchObject({ title: "Otters", duration: 120, uploader: "Ada" });
  });

  it("keeps the properties of nested items apart", async () => {
    const info = await resolvePage(`${open}
      <div itemprop="publisher" itemscope itemtype="https://schema.org/Organization">
        <meta itemprop="name" content="Example Tube"></div>
      <meta itemprop="name" content="Otters"></div><meta itemprop="duration" content="PT9M">`);
    expect(info).toMatchObject({ title: "Otters", duration: null, site_name: "Example Tube" });
  });

  it("is case-insensitive in tags and attributes", async () => {
    const info = await resolvePage(
      `<DIV ITEMSCOPE itemType=http://schema.org/VideoObject><META itemProp="name" CONTENT='Otters'></DIV>`,
    );
    expect(info.title).toBe("Otters");
  });

  it("ends items with their element, also with unclosed elements in it", async () => {
    const info = await resolvePage(`<section>${open}<p><span itemprop="name">Otters</div></section>
      <span itemprop="duration" content="PT9M"></span><p itemprop="description">Elsewhere</p>`);
    expect(info).toMatchObject({ title: "Otters", duration: null, description: null });
  });

  it("takes the more detailed one of two items with the same file", async () => {
    const url = `<meta itemprop="contentUrl" content="/1.mp4">`;
    const info = await resolvePage(`${open}${url}</div>
      ${open}${url}<meta itemprop="duration" content="PT1M"><meta itemprop="name" content="Otters"></div>`);
    expect(info).toMatchObject({ duration: 60, title: "Otters" });
  });

  it("ignores an item without properties", async () => {
    expect((await resolvePage(`${open}</div>`)).media_type).toBe("none");
  });
});
