import { describe, expect, it } from "vitest";
import { resolvePage } from "./page/saved-client.ts";

const meta = (entries: Record<string, string>) =>
  Object.entries(entries)
    .map(([property, content]) => `<meta property="${property}" content="${content}">`)
    .join("");

describe("Open Graph", () => {
  it("reads a video with its player and its file", async () => {
    const info = await resolvePage(
      `<meta property="og:video:url" content="http://player.example.com/1">
       <meta property="og:video:secure_url" content="https://player.example.com/1">
       <meta property="og:video:type" content="text/html">
       <meta property="og:video:width" content="1280"><meta property="og:video:height" content="720">
       <meta property="og:video:url" content="https://cdn.example.com/1">
       <meta property="og:video:type" content="video/mp4">
       <meta property="og:video:width" content="640"><meta property="og:video:height" content="360">` +
        meta({
          "og:type": "video.other",
          "og:title": "Otters",
          "og:locale": "en_US",
          "og:video:duration": "8.98",
          "og:video:release_date": "2013-07-19T08:45:00-07:00",
          "og:restrictions:age": "18+",
        }) +
        `<meta property="video:tag" content="otter"><meta property="og:video:tag" content="play">`,
    );
    expect(info).toMatchObject({
      media_type: "video",
      title: "Otters",
      language: "en-US",
      duration: 8.98,
      uploaded_at: "2013-07-19T15:45:00Z",
      age_limit: 18,
      tags: ["otter", "play"],
      embed: { url: "https://player.example.com/1", width: 1280, height: 720 },
      formats: [{ format_id: "https-360p-mp4", url: "https://cdn.example.com/1", width: 640, height: 360 }],
    });
  });

  it("accepts names in `name`, and values in `value`", async () => {
    const info = await resolvePage(`<meta name="og:title" value="Otters">`);
    expect(info.title).toBe("Otters");
  });

  it("prefers an HTML player to Flash, and Flash to nothing", async () => {
    const flash = meta({
      "og:video": "https://example.com/player.swf",
      "og:video:type": "application/x-shockwave-flash",
    });
    const html = meta({ "twitter:player": "https://player.example.com/1" });
    expect((await resolvePage(flash + html)).embed?.url).toBe("https://player.example.com/1");
    expect((await resolvePage(flash)).embed?.url).toBe("https://example.com/player.swf");
    expect((await resolvePage(flash)).formats).toEqual([]);
  });

  it("does not take the page's own URL for a player", async () => {
    const info = await resolvePage(meta({ "og:video": "https://video.example.com/watch/1/" }));
    expect(info.embed).toBeNull();
  });

  it("ignores unfilled placeholders of templates", async () => {
    const info = await resolvePage(meta({ "og:image": "undefined", "og:video": "null", "og:title": "  " }));
    expect(info).toMatchObject({ thumbnails: [], embed: null, title: null });
  });

  it("calls songs audio", async () => {
    const info = await resolvePage(meta({ "og:type": "music.song", "og:audio": "https://cdn.example.com/1.mp3" }));
    expect(info).toMatchObject({ media_type: "audio", formats: [{ vcodec: "none", ext: "mp3" }] });
  });
});

describe("Twitter Cards", () => {
  const player = meta({
    "twitter:player": "https://player.example.com/1",
    "twitter:player:width": "640",
  });

  it("state a player and its stream", async () => {
    const info = await resolvePage(
      player +
        meta({
          "twitter:player:stream": "https://cdn.example.com/1.mp4",
          "twitter:title": "Otters",
          "twitter:image": "https://img.example.com/1.jpg",
        }),
    );
    expect(info).toMatchObject({
      media_type: "video",
      title: "Otters",
      embed: { url: "https://player.example.com/1", width: 640 },
      formats: [{ url: "https://cdn.example.com/1.mp4" }],
      thumbnails: [{ url: "https://img.example.com/1.jpg" }],
    });
  });

  it("are ignored as video if the page calls itself something else", async () => {
    const info = await resolvePage(player + meta({ "og:type": "decks:presentation" }));
    expect(info).toMatchObject({ media_type: "none", embed: null });
  });
});
