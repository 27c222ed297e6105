import { describe, expect, it } from "vitest";
import { chooseSubtitles } from "../../src/runner/choice/choose-subtitles.ts";
import { jsonLd, pageUrl, resolveFrom, resolvePage } from "./page/saved-client.ts";

describe("HTML", () => {
  it("reads a player with its sources and tracks", async () => {
    const info = await resolvePage(`<title>Otters</title><video poster="/p.jpg" controls>
      <source src="/1-720.mp4" type='video/mp4; codecs="avc1.64001F, mp4a.40.2"' res="720">
      <source src="/1.webm" type="video/webm">
      <track kind="captions" src="/1.en.vtt" srclang="en" label="English">
      <track kind="chapters" src="/1.ch.vtt" srclang="en"></video>`);
    expect(info).toMatchObject({
      media_type: "video",
      title: "Otters",
      thumbnails: [{ url: "https://video.example.com/p.jpg" }],
      formats: [
        { format_id: "https-720p-mp4", height: 720, vcodec: "avc1.64001F", acodec: "mp4a.40.2" },
        { format_id: "https-webm", mime_type: "video/webm" },
      ],
      subtitles: {
        en: [{ url: "https://video.example.com/1.en.vtt", ext: "vtt", name: "English" }],
      },
      sources: { formats: "html", subtitles: "html" },
    });
    expect(info.subtitles["en"]).toHaveLength(1);
  });

  it("reads more subtitles than a task may have, so that it knows of further ones", async () => {
    const tracks = Array.from({ length: 70 }, (_, n) => `<track src="/${n}.vtt" srclang="x-${n}">`).join("");
    const info = await resolvePage(`<video src="/1.mp4">${tracks}</video>`);
    const { left } = chooseSubtitles(info, { subtitles: true });
    expect(left).toBe(10);
  });

  it("reads beside its tracks all subtitles of its playlist, in the same languages too, its own first", async () => {
    const rendition = (name: string, language: string, more = "") =>
      `#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="${name}",LANGUAGE="${language}"${more},URI="${name}.m3u8"`;
    const body = ["#EXTM3U", rendition("all", "en"), rendition("signs", "en", ",FORCED=YES"), rendition("tous", "fr")];
    const playlist = [...body, '#EXT-X-STREAM-INF:BANDWIDTH=800000,SUBTITLES="s"', "v.m3u8"].join("\n");
    const { subtitles } = await resolvePage(
      `<video src="/master.m3u8"><track src="/en.vtt" srclang="en"><track src="/de.vtt" srclang="de"></video>`,
      { "https://video.example.com/master.m3u8": { type: "application/vnd.apple.mpegurl", body: playlist } },
    );
    const listed = Object.entries(subtitles).map(([tag, listings]) => {
      return [`${tag}:`, ...listings.map(({ url, role }) => `${role} ${url.split("/").at(-1)}`)].join(" ");
    });
    expect(listed.toSorted()).toEqual([
      "de: subtitles de.vtt",
      "en: subtitles en.vtt subtitles all.m3u8 forced signs.m3u8",
      "fr: subtitles tous.m3u8",
    ]);
  });

  it("reads the sources of an element that plays and is none of HTML's, of the first one", async () => {
    const info = await resolvePage(`<amp-video poster="/1.jpg"><source src="/1-480.mp4" size="480">
      <source src="/1-1080.mp4" size="1080"><track src="/1.vtt" srclang="en"></amp-video>
      <picture><source srcset="/1.webp"></picture><video-js><source src="/2.m3u8"></video-js>`);
    expect(info.formats.map(({ url, height }) => [url, height])).toEqual([
      ["https://video.example.com/1-1080.mp4", 1080],
      ["https://video.example.com/1-480.mp4", 480],
    ]);
    expect(Object.keys(info.subtitles)).toEqual(["en"]);
  });

  it.each(["res=720", "size=720", "label=720p", 'title="HD 720p"', "data-quality=720p"])(
    "reads the height of a source from %s",
    async (attribute) => {
      const info = await resolvePage(`<video><source src="/1.mp4" ${attribute}></video>`);
      expect(info.formats).toMatchObject([{ height: 720 }]);
    },
  );

  it("reads a manifest that is preloaded for the player, if no player states its source", async () => {
    const preload = `<link rel="preload" as="fetch" href="/1.m3u8"><link rel="preload" as="image" href="/1.jpg">`;
    const stated = await resolvePage(`${preload}<video src="/2.mp4"></video>`);
    expect(stated.formats.map(({ url }) => url)).toEqual(["https://video.example.com/2.mp4"]);
    const info = await resolvePage(`${preload}<video src="blob:1"></video>`);
    expect(info.formats).toMatchObject([{ protocol: "m3u8" }]);
  });

  it("returns unique ids for formats with the same values", async () => {
    const info = await resolvePage(`<audio><source src="/a.mp3"><source src="/b.mp3"></audio>`);
    expect(info.media_type).toBe("audio");
    expect(new Set(info.formats.map(({ format_id }) => format_id)).size).toBe(2);
  });

  it("ignores a muted loop as decoration unless it has controls or the page calls itself a video", async () => {
    const loop = `<video autoplay loop muted src="/bg.mp4"></video>`;
    expect((await resolvePage(loop)).formats).toEqual([]);
    const called = `<meta property="og:type" content="video.other">${loop}`;
    expect((await resolvePage(called)).formats).toHaveLength(1);
    const late = (attributes: string) => `<video autoplay loop muted data-src="/1.mp4" ${attributes}></video>`;
    expect((await resolvePage(late("controls"))).formats).toHaveLength(1);
    expect((await resolvePage(late("data-controls=false controls=false"))).formats).toEqual([]);
  });

  describe("of a page that states such a loop in a <meta> element and shows it", () => {
    const loop = `<title>Otters</title><meta property="og:video" content="/bg.mp4"><meta property="og:type" content="video.other">
      <video autoplay loop muted><source src="/bg.mp4"></video>`;
    const setUp = (file: string) => `<script>setup({file: "${file}"})</script>`;
    const unnamed = ["/1.mp4", "/2.mp4", "/3.mp4", "/4.mp4"].map(setUp).join("");
    const related = `<script>var related = [{title: "Voles", file: "/1.mp4"}]</script>`;

    it.each([
      ["another player", "/own.mp4", `<video controls src="/own.mp4"></video>`],
      ["what a script sets up", "/own.m3u8", `<video id="p"></video>${setUp("/own.m3u8")}`],
      ["nothing else", "/bg.mp4", ""],
      ["several other media, of which nothing shows which is the page's", "/bg.mp4", unnamed],
      ["related media", "/bg.mp4", related],
      ["a silent preview of another page", "/bg.mp4", `<a href="/2"><video loop muted src="/2.mp4"></video></a>`],
      ["a sound", "/bg.mp4", `<audio src="/click.mp3"></audio>`],
      ["a sound that a script sets up", "/bg.mp4", `<script>setup({audio: "/click.mp3"})</script>`],
    ])("with %s, takes %s", async (_, path, more) => {
      const { formats } = await resolvePage(loop + more);
      expect(formats.map(({ url }) => url)).toEqual([`https://video.example.com${path}`]);
    });
  });

  it.each([
    ["a silent one without controls", "/own.mp4", `autoplay muted`, `controls`],
    ["an advertisement", "/own.mp4", `id="preroll" autoplay`, `controls`],
    ["a background", "/own.mp4", `class="background-video"`, `controls`],
    ["one with sound that scripts control", "/1.mp4", `id="player" autoplay`, `controls`],
    ["one whose names tell of its captions and poster", "/1.mp4", `class="has-captions no-poster"`, `controls`],
    ["one that is named as an advertisement, but has controls", "/1.mp4", `class="vast-player" controls`, `controls`],
    ["a silent one, and another without controls", "/1.mp4", `autoplay muted`, `preload=none`],
    ["a silent one, and an audio", "/1.mp4", `autoplay muted`, undefined],
  ])("of a first video and a further player, takes the right one: %s → %s", async (_, path, first, second) => {
    const other =
      second === undefined ? `<audio controls src="/own.mp3"></audio>` : `<video ${second} src="/own.mp4"></video>`;
    const { formats } = await resolvePage(`<title>Otters</title><video ${first} src="/1.mp4"></video>${other}`);
    expect(formats.map(({ url }) => url)).toEqual([`https://video.example.com${path}`]);
  });

  it("reads the poster and tracks of a page's only player, whose source a script states, but of no one of several", async () => {
    const player = `<video poster="/p.jpg"><track src="/en.vtt" srclang="en"><track kind="chapters" src="/1.vtt"></video>`;
    const set = `<script>hls.loadSource("/1.m3u8")</script>`;
    const chapters = { "https://video.example.com/1.vtt": { body: "WEBVTT\n\n00:00.000 --> 00:09.000\nDam\n" } };
    const info = await resolvePage(player + set, chapters);
    expect(info).toMatchObject({
      formats: [{ protocol: "m3u8" }],
      thumbnails: [{ url: "https://video.example.com/p.jpg" }],
      subtitles: { en: [{ url: "https://video.example.com/en.vtt" }] },
      chapters: [{ title: "Dam" }],
    });
    expect((await resolvePage(`${player}<video></video>${set}`)).subtitles).toEqual({});
    const element = `<media-player src="/1.m3u8"><media-provider><track src="/en.vtt" srclang="en">
      <track src="/de.vtt" srclang="de"></media-provider></media-player>`;
    expect(Object.keys((await resolvePage(element)).subtitles)).toEqual(["en", "de"]);
  });

  it.each([
    "https://example.com/",
    "https://example.com/en/",
    "https://example.com/us",
    "https://example.com/index.html",
  ])("ignores a player on the front page %s", async (url) => {
    const body = `<html lang="en"><video src="/promo.mp4" controls></video>`;
    expect((await resolveFrom({ [url]: { body } }, url)).media_type).toBe("none");
  });

  it.each([
    `<html lang="en">`,
    `<meta http-equiv="content-language" content="en">`,
    `<meta name="language" content="en">`,
    `<meta property="og:locale" content="en_US">`,
  ])("ignores a player on the front page of a language that %s states", async (statement) => {
    const url = "https://example.com/en/";
    const body = `${statement}<video src="/promo.mp4" controls></video>`;
    expect((await resolveFrom({ [url]: { body } }, url)).media_type).toBe("none");
  });

  it.each([
    `<video src="/promo.mp4" controls></video>`,
    `<iframe src="https://player.example.com/1" allowfullscreen></iframe>`,
    jsonLd({ "@type": "VideoObject", name: "Otters", contentUrl: "/promo.mp4" }),
  ])("takes the medium of a page of two letters that are not its language: %s", async (medium) => {
    const url = "https://example.com/tv";
    const pages = {
      [url]: { body: `<html lang="en"><title>TV</title>${medium}` },
      "https://player.example.com/1": { body: `<video src="https://example.com/promo.mp4" controls></video>` },
    };
    const { formats } = await resolveFrom(pages, url);
    expect(formats.map((format) => format.url)).toEqual(["https://example.com/promo.mp4"]);
  });

  it.each(["", `<link rel="canonical" href="watch/1">`])(
    "takes a player of a page whose base is the front page, and which has %j",
    async (link) => {
      const { formats } = await resolvePage(`<base href="/">${link}<video src="otters.mp4" controls></video>`);
      expect(formats.map(({ url }) => url)).toEqual(["https://video.example.com/otters.mp4"]);
    },
  );

  it("reads texts as in HTML", async () => {
    const info = await resolvePage(`<html lang="pt_br"><!-- <title>no</title> -->
      <svg><title>icon</title></svg><script>"<title>no</title>"</script>
      <title>\n Otters &amp;amp; more\n</title><meta name=description content="a &lt;b&gt; &copy=1">
      <meta name="keywords" content="otter, Otter,play"><meta name="rating" content="RTA-5042-1996-1400-1577-RTA">`);
    expect(info).toMatchObject({
      language: "pt-BR",
      title: "Otters &amp; more",
      description: "a <b> &copy=1",
      tags: ["otter", "play"],
      age_limit: 18,
    });
  });

  it("accepts an author, but not the site as author", async () => {
    expect((await resolvePage(`<meta name="author" content="Ada">`)).uploader).toBe("Ada");
    expect((await resolvePage(`<meta name="author" content="video.example.com">`)).uploader).toBeNull();
    const site = `<meta property="og:site_name" content="Tube"><meta name="author" content="tube">`;
    expect((await resolvePage(site)).uploader).toBeNull();
  });

  it("decodes the page's encoding", async () => {
    const body = Buffer.from("<meta charset=windows-1252><title>Caf\xe9</title>", "latin1");
    expect((await resolveFrom({ [pageUrl]: { type: "text/html", body } })).title).toBe("Café");
  });

  it("limits texts and lists", async () => {
    const info = await resolvePage(
      `<title>${"t".repeat(5_000)}</title><meta name="description" content="${"d".repeat(20_000)}">` +
        `<meta property="og:image" content="/1.jpg">`.repeat(5) +
        Array.from({ length: 300 }, (_, i) => `<meta property="og:image" content="/${i}.png">`).join("") +
        Array.from({ length: 300 }, (_, i) => `<meta property="article:tag" content="${i}">`).join("") +
        `<video>${Array.from({ length: 300 }, (_, i) => `<source src="/${i}.mp4">`).join("")}</video>`,
    );
    expect(info.title).toHaveLength(2_000);
    expect(info.description).toHaveLength(10_000);
    expect(info.thumbnails).toHaveLength(50);
    expect(info.tags).toHaveLength(100);
    expect(info.formats).toHaveLength(50);
  });
});
