import { Value } from "@sinclair/typebox/value";
import { describe, expect, it } from "vitest";
import { PageInfo } from "../../src/model/page-info.ts";
import { createPageResolver } from "./page/local-reader.ts";
import { createSavedClient, fixedNow, jsonLd, pageUrl, resolvePage, type SavedResponse } from "./page/saved-client.ts";

/** Resolves what is at `pageUrl`, or at `url`; checks it against the schema. */
async function read(response: SavedResponse, entriesCursor?: string, url = pageUrl): Promise<PageInfo> {
  const client = createSavedClient({ [url]: response });
  const resolver = createPageResolver({ client, pageMaxBytes: 16 * 1024 * 1024, now: fixedNow });
  const info = await resolver.resolve(new URL(url), { signal: new AbortController().signal, entriesCursor });
  expect([...Value.Errors(PageInfo, info)]).toEqual([]);
  return info;
}

/** Reads a list slice by slice. */
async function readAll(response: SavedResponse) {
  const slices: NonNullable<PageInfo["entries"]>[] = [];
  let cursor: string | undefined;
  do {
    const info = await read(response, cursor);
    slices.push(info.entries ?? []);
    if (info.entries_next !== undefined) expect(info.entries).not.toHaveLength(0);
    cursor = info.entries_next;
  } while (cursor !== undefined);
  return slices;
}

const urlsOf = (info: PageInfo) => info.entries?.map(({ url }) => url);
const rss = (items: string) => `<?xml version="1.0"?>
<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><title>Otter talk</title>
<link>https://otters.example/</link><description>All about otters</description><language>en-gb</language>
<itunes:author>Ada</itunes:author><image><url>/logo.png</url><title>Not this</title></image>${items}</channel></rss>`;
const item = (n: number, more = "") =>
  `<item><title>Otter ${n}</title><enclosure url="/audio/${n}.mp3" type="audio/mpeg" length="1"/>${more}</item>`;

describe("an episode of a feed", () => {
  const episode = async (more: string) => {
    const { entries } = await read({ type: "application/rss+xml", body: rss(item(1, more)) });
    const { chapters, chapters_url, subtitles } = entries![0]!;
    return { chapters, chapters_url, subtitles };
  };

  it("has the chapters of Podlove, in order", async () => {
    const { chapters } =
      await episode(`<psc:chapters version="1.2"><psc:chapter start="00:01:02.500" title="Two &amp; more"/>
      <psc:chapter start="0" title="One"/><psc:chapter start="90" title="Three"/>
      <psc:chapter start="soon" title="None"/><psc:chapter start="95"/></psc:chapters>`);
    expect(chapters).toEqual([
      { start_time: 0, end_time: 62.5, title: "One" },
      { start_time: 62.5, end_time: 90, title: "Two & more" },
      { start_time: 90, end_time: null, title: "Three" },
    ]);
  });

  it("is listed without chapters if they alone are longer than a record, and so are the episodes after it", async () => {
    const chapter = (start: number) => `<psc:chapter start="${start}" title="${"獺".repeat(200)}"/>`;
    const long = `<psc:chapters>${Array.from({ length: 500 }, (_, n) => chapter(n)).join("")}</psc:chapters>`;
    const body = rss(item(1) + item(2, long) + item(3, chapter(0) + chapter(1)));
    const entries = (await readAll({ type: "application/rss+xml", body })).flat();
    expect(entries.map(({ title, chapters }) => [title, chapters?.length])).toEqual([
      ["Otter 1", undefined],
      ["Otter 2", undefined],
      ["Otter 3", 2],
    ]);
  });

  it("has no chapter that ends where it starts", async () => {
    const at = (start: string, title: string) => `<psc:chapter start="${start}" title="${title}"/>`;
    const { chapters } = await episode(`<psc:chapters>${at("0", "A")}${at("9", "B")}${at("9", "C")}</psc:chapters>`);
    expect(chapters?.map(({ end_time, title }) => [end_time, title])).toEqual([
      [9, "A"],
      [null, "C"],
    ]);
  });

  it("has its transcripts with times as subtitles, by language: that of the feed unless they state one", async () => {
    const { subtitles } = await episode(`<podcast:transcript url="/1.srt" type="application/srt"/>
      <podcast:transcript url="/1.html" type="text/html"/><podcast:transcript url="/1.json" type="application/json"/>
      <podcast:transcript url="/1?vtt" type="text/vtt" language="de" rel="captions"/>
      <podcast:transcript url="/1.VTT" type="application/octet-stream"/><podcast:transcript url="ftp://a.test/1.vtt" type="text/vtt"/>`);
    const at = (path: string) => new URL(path, pageUrl).href;
    expect(subtitles).toEqual({
      "en-GB": [
        { url: at("/1.srt"), ext: "srt", name: null },
        { url: at("/1.VTT"), ext: "vtt", name: null },
      ],
      de: [{ url: at("/1?vtt"), ext: "vtt", name: null, role: "captions" }],
    });
  });

  it("has the file of chapters that its feed names, unless that lists them itself", async () => {
    const named = `<podcast:chapters url="/1.json" type="application/json+chapters"/>`;
    expect((await episode(named)).chapters_url).toBe(new URL("/1.json", pageUrl).href);
    const listed = `<psc:chapters><psc:chapter start="0" title="One"/><psc:chapter start="9" title="Two"/></psc:chapters>`;
    expect((await episode(named + listed)).chapters_url).toBeUndefined();
    expect((await episode(`<podcast:chapters url="file:///1.json"/>`)).chapters_url).toBeUndefined();
  });

  it("has none of them if the feed states none", async () => {
    expect(await episode("<psc:chapters/>")).toEqual({});
  });
});

describe("a feed", () => {
  it("of a podcast lists its enclosures, with title, date, duration and picture", async () => {
    const more = `<itunes:title>No</itunes:title><pubDate>Tue, 05 Mar 2024 10:00:00 +0100</pubDate><link>https://otters.example/1</link>
      <itunes:duration>1:02:03</itunes:duration><itunes:image href="/1.jpg"/>`;
    const info = await read({ type: "application/rss+xml", body: rss(item(1, more)) });
    expect(info).toMatchObject({
      title: "Otter talk",
      description: "All about otters",
      uploader: "Ada",
      language: "en-GB",
      webpage_url: "https://otters.example/",
      thumbnails: [{ url: "https://video.example.com/logo.png" }],
      media_type: "none",
      formats: [],
      entries_count: 1,
      sources: { title: "feed", entries: "feed" },
      resolver: "page",
    });
    expect(info.entries).toEqual([
      {
        url: "https://video.example.com/audio/1.mp3",
        title: "Otter 1",
        duration: 3723,
        thumbnail: "https://video.example.com/1.jpg",
        uploaded_at: "2024-03-05T09:00:00Z",
        uploader: "Ada",
      },
    ]);
    expect(info).not.toHaveProperty("entries_next");
  });

  it("gives an episode the picture and the author of its podcast if it states none", async () => {
    const own = `<itunes:author>Bea</itunes:author><itunes:image href="/2.jpg"/>`;
    const { entries } = await read({ type: "application/rss+xml", body: rss(item(1) + item(2, own)) });
    expect(entries).toMatchObject([
      { uploader: "Ada", thumbnail: "https://video.example.com/logo.png" },
      { uploader: "Bea", thumbnail: "https://video.example.com/2.jpg" },
    ]);
  });

  it("identifies an episode by the id that it states, unless others state the same one", async () => {
    const ids = ["<guid>a</guid>", "<guid> same </guid>", "", "<guid>same</guid>", `<guid>${"x".repeat(1_001)}</guid>`];
    const body = rss(ids.map((id, n) => item(n, id)).join(""));
    const { entries = [] } = await read({ type: "application/rss+xml", body });
    const id = "https://video.example.com/watch/1 a";
    const none = undefined;
    expect(entries.map(({ video }) => video)).toEqual([{ extractor: "feed", id }, none, none, none, none]);
  });

  it("in Atom lists enclosures", async () => {
    const body = `<feed xmlns="http://www.w3.org/2005/Atom"><title>Otters</title><author><name>Ada</name></author>
      <entry><title>One</title><link href="/watch/1"/><link rel="enclosure" type="video/mp4" href="/1.mp4"/>
      <published>2024-03-05T10:00:00Z</published></entry></feed>`;
    const info = await read({ type: "application/atom+xml", body });
    expect(info).toMatchObject({ title: "Otters", uploader: "Ada" });
    expect(info.entries).toMatchObject([
      { url: "https://video.example.com/1.mp4", title: "One", uploaded_at: "2024-03-05T10:00:00Z" },
    ]);
  });

  it("in Atom has titles and subtitles as text, whether they state to be text, HTML or XHTML", async () => {
    const entry = (title: string) =>
      `<entry>${title}<link rel="enclosure" type="video/mp4" href="/${title.length}.mp4"/></entry>`;
    const body = `<feed xmlns="http://www.w3.org/2005/Atom"><title type="html">&lt;b>Otters&lt;/b> &amp;amp; friends</title>
      <subtitle type="html"><![CDATA[<p>One</p><p>Two &lt; 3<script>no</script></p>]]></subtitle>
      ${entry('<title type="html">Caf&amp;eacute; &lt;i class="a">&amp;lt;i&amp;gt;&lt;/i></title>')}
      ${entry('<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">Less <em>is &lt;</em> more</div></title>')}
      ${entry('<title type="text">&lt;video> &amp;amp; you</title>')}
      ${entry("<title>&lt;video> and the rest</title>")}</feed>`;
    const { title, description, entries = [] } = await read({ type: "application/atom+xml", body });
    expect([title, description]).toEqual(["Otters & friends", "One\nTwo < 3"]);
    expect(entries.map((each) => each.title)).toEqual([
      "Café <i>",
      "Less is < more",
      "<video> &amp; you",
      "<video> and the rest",
    ]);
  });

  it("takes URLs as relative to what it states as their base", async () => {
    const entry = (href: string, base = "") =>
      `<entry ${base}><title>V</title><link rel="enclosure" type="video/mp4" href="${href}"/></entry>`;
    const body = `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://media.example.com/a/b/">
      ${entry("1.mp4")}${entry("2.mp4", 'xml:base="../c/"')}${entry("3.mp4")}${entry("4.mp4", 'xml:base="file:///etc/"')}</feed>`;
    const { entries = [] } = await read({ type: "application/atom+xml", body });
    expect(entries.map(({ url }) => url)).toEqual([
      "https://media.example.com/a/b/1.mp4",
      "https://media.example.com/a/c/2.mp4",
      "https://media.example.com/a/b/3.mp4",
      "https://media.example.com/a/b/4.mp4",
    ]);
  });

  it("without any medium lists the pages that its items lead to", async () => {
    const entry = (n: number) => `<entry><title>V${n}</title><link rel="alternate" href="/watch/${n}"/>
      <media:group><media:title>no</media:title><media:content url="/v/${n}" type="application/x-shockwave-flash"/>
      <media:thumbnail url="/${n}.jpg"/></media:group></entry>`;
    const channel = `<author><name>Ada</name></author><logo>/logo.png</logo>`;
    const second = entry(2).replace(/<media:group>.*<\/media:group>/s, "<id>2</id>");
    const body = `<?xml version="1.0"?><!-- a --><feed><link rel="self" href="/feed"/>${channel}${entry(1)}${second}</feed>`;
    expect((await read({ type: "text/xml", body })).entries).toMatchObject([
      { url: "https://video.example.com/watch/1", title: "V1", thumbnail: "https://video.example.com/1.jpg" },
      { url: "https://video.example.com/watch/2", title: "V2", uploader: null, thumbnail: null },
    ]);
  });

  it("with some media lists these alone: what is only text or a picture is no entry", async () => {
    const items = `<item><title>Text</title><link>/post</link></item>${item(1)}
      <item><enclosure url="/cat.jpg" type="image/jpeg"/><link>/cat</link></item>
      <item><media:content url="/2.mp4" medium="video"/></item>`;
    const info = await read({ type: "application/rss+xml", body: rss(items) });
    expect(urlsOf(info)).toEqual(["https://video.example.com/audio/1.mp3", "https://video.example.com/2.mp4"]);
  });

  it("of Media RSS lists the default of several versions, else the first", async () => {
    const version = (file: string, more = "") => `<media:content url="/${file}" ${more}/>`;
    const group = (more: string) =>
      `<item><media:group>${version("1.mp4")}${version("2.mp4", more)}${version("3.jpg", 'isDefault="true"')}</media:group></item>`;
    const body = rss(group('isDefault="true"') + group('isDefault="false"'));
    const listed = urlsOf(await read({ type: "application/rss+xml", body }));
    expect(listed).toEqual(["https://video.example.com/2.mp4", "https://video.example.com/1.mp4"]);
  });

  it("of Media RSS states durations with the media", async () => {
    const media = (attribute: string, more = "") =>
      `<item>${more}<media:content url="/1.mp4" type="video/mp4" ${attribute}/></item>`;
    const stated = `duration="61"`;
    const items = [media(stated), media(stated, "<itunes:duration>9</itunes:duration>"), media("")];
    const { entries = [] } = await read({ type: "application/rss+xml", body: rss(items.join("")) });
    expect(entries.map(({ duration }) => duration)).toEqual([61, 9, null]);
  });

  it.each([
    ["text/html", rss(item(1))],
    ["text/plain", `\uFEFF\n${rss(item(1))}`],
    ["application/octet-stream", rss(item(1))],
    [null, rss(item(1))],
    ["application/xml", `<rdf:RDF><channel><title>T</title></channel>${item(1)}</rdf:RDF>`],
  ])("is recognised by its first bytes if it is sent as %s", async (type, body) => {
    expect(urlsOf(await read({ type, body }))).toEqual(["https://video.example.com/audio/1.mp3"]);
  });

  it.each(["<html><body><rss></rss>", "<!DOCTYPE html><feed>"])(
    "is not what a page only contains: %s",
    async (body) => {
      const info = await read({ type: "text/html", body: `${body}<title>Page</title>${item(1)}` });
      expect(info).not.toHaveProperty("entries");
    },
  );

  it("of 2,000 items is listed in slices: all are there, in order", async () => {
    const items = Array.from({ length: 2_000 }, (_, n) => item(n)).join("");
    const slices = await readAll({ type: "application/rss+xml", body: rss(items) });
    const expected = Array.from({ length: 2_000 }, (_, n) => `https://video.example.com/audio/${n}.mp3`);
    expect(slices.flat().map(({ url }) => url)).toEqual(expected);
    expect(slices).toHaveLength(10);
  });

  it("says how many entries it has in its first slice", async () => {
    const items = Array.from({ length: 201 }, (_, n) => item(n)).join("");
    const first = await read({ type: "application/rss+xml", body: rss(items) });
    expect(first).toMatchObject({ entries_count: 201, entries_next: expect.any(String) });
    const last = await read({ type: "application/rss+xml", body: rss(items) }, first.entries_next);
    expect(last).toMatchObject({ entries_count: 201, entries: [{ title: "Otter 200" }] });
    expect(last).not.toHaveProperty("entries_next");
  });

  it("leaves out URLs of other schemes, and with credentials", async () => {
    const urls = [
      "ftp://x/1.mp3",
      "javascript:alert(1)",
      "file:///etc/passwd",
      "https://a:b@x.example/1.mp3",
      "data:,x",
    ];
    const items = urls.map((url) => `<item><enclosure url="${url}" type="audio/mpeg"/></item>`).join("");
    const info = await read({ type: "application/rss+xml", body: rss(items + item(1)) });
    expect(urlsOf(info)).toEqual(["https://video.example.com/audio/1.mp3"]);
  });

  it("expands no entities of its own", async () => {
    const body = `<!DOCTYPE rss [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY x SYSTEM "file:///etc/passwd">]>
      <rss><channel><title>T &b; &x; &amp; &#233;</title>${item(1)}</channel></rss>`;
    expect((await read({ type: "application/rss+xml", body })).title).toBe("T &b; &x; & é");
  });

  it.each([
    ["elements nested 100,000 times", "<a>".repeat(100_000)],
    ["an element with 100,000 attributes", `<a ${Array.from({ length: 100_000 }, (_, n) => `a${n}="1"`).join(" ")}>`],
  ])("is refused for %s", async (_what, hostile) => {
    const error = read({ type: "application/rss+xml", body: `<rss><channel>${hostile}${item(1)}</channel></rss>` });
    await expect(error).rejects.toMatchObject({ code: "upstream_invalid" });
  });

  it("bounds texts of any length, and lists what a cut feed has", async () => {
    const body = rss(`${item(1)}<item><title>${"x".repeat(1_000_000)}`).replace("</channel></rss>", "");
    expect(urlsOf(await read({ type: "application/rss+xml", body }))).toEqual([
      "https://video.example.com/audio/1.mp3",
    ]);
  });
});

describe("an M3U", () => {
  const url = "https://video.example.com/list.m3u";

  it("of several media lists them, with titles, durations and pictures", async () => {
    const body = `#EXTM3U\r\n#PLAYLIST:Otters\r\n#EXTINF:123 tvg-logo="/a,b.png" group-title="x",One, two\r\n/1.mp3\r\n
#EXTINF:-1,Live\nhttps://other.example/live.m3u8\n2.mp3\nC:\\Music\\3.mp3\nftp://x/4.mp3\n`;
    const info = await read({ type: "audio/x-mpegurl", body }, undefined, url);
    expect(info).toMatchObject({ title: "Otters", entries_count: 3, formats: [], sources: { entries: "m3u" } });
    const unknown = { title: null, duration: null, thumbnail: null, uploaded_at: null };
    expect(info.entries).toEqual([
      {
        ...unknown,
        url: "https://video.example.com/1.mp3",
        title: "One, two",
        duration: 123,
        thumbnail: "https://video.example.com/a,b.png",
      },
      { ...unknown, url: "https://other.example/live.m3u8", title: "Live" },
      { ...unknown, url: "https://video.example.com/2.mp3" },
    ]);
  });

  it.each(["1.mp3\n2.mp3\n", "1.mp3\r2.mp3\r"])("without a header lists its lines: %j", async (body) => {
    const info = await read({ type: "audio/x-mpegurl", body }, undefined, url);
    expect(urlsOf(info)).toEqual(["https://video.example.com/1.mp3", "https://video.example.com/2.mp3"]);
  });

  it("has titles in UTF-8, else in Windows-1252, line by line", async () => {
    const titles = [Buffer.from("Bär"), Buffer.from("M\xfcller \x96 Live", "latin1")];
    const lines = titles
      .flatMap((title, i) => ["#EXTINF:-1,", title, `\n/${i}.mp3\n`])
      .map((part) => Buffer.from(part));
    const body = Buffer.concat([Buffer.from("#EXTM3U\n"), ...lines]);
    const info = await read({ type: "audio/x-mpegurl", body }, undefined, url);
    expect(info.entries?.map(({ title }) => title)).toEqual(["Bär", "Müller – Live"]);
  });

  it.each(["utf-8", "utf-16le"] as const)("is one video if it is a playlist of HLS, in %s", async (encoding) => {
    const body = Buffer.from(
      "\uFEFF#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\n/1.ts\n#EXTINF:5,\n/2.ts\n#EXT-X-ENDLIST\n",
      encoding,
    );
    const info = await read({ type: "application/vnd.apple.mpegurl", body }, undefined, url);
    expect(info).not.toHaveProperty("entries");
    expect(info.formats).toHaveLength(1);
  });
});

describe("a PLS", () => {
  const url = "https://radio.example/listen.pls";
  const body = `[playlist]\r\nNumberOfEntries=3\r\nFile2=/two.mp3\r\nTitle2=Two = two\r\nLength2=90\r\nFile10=ftp://x/4.mp3\r
file1=https://a.example/live\r\nTITLE1=Otter radio\r\nLength1=-1\r\nTitle3=No file\r\nVersion=2\r\n`;
  const unknown = { duration: null, thumbnail: null, uploaded_at: null };
  const entries = [
    { ...unknown, url: "https://a.example/live", title: "Otter radio" },
    { ...unknown, url: "https://radio.example/two.mp3", title: "Two = two", duration: 90 },
  ];

  it.each([
    ["its type", "audio/x-scpls", "https://radio.example/listen"],
    ["its name", "application/octet-stream", url],
    ["its first line", "text/plain", "https://radio.example/listen"],
  ])("lists its URLs by their numbers, known by %s", async (_what, type, at) => {
    const info = await read({ type, body }, undefined, at);
    expect(info).toMatchObject({ media_type: "none", formats: [], entries_count: 2, sources: { entries: "pls" } });
    expect(info.entries).toEqual(entries);
  });

  it("may have thousands of entries", async () => {
    const lines = Array.from({ length: 12_000 }, (_, i) => `File${i + 1}=/${i + 1}.mp3\n`);
    const info = await read({ type: "audio/x-scpls", body: `[playlist]\n${lines.join("")}` }, undefined, url);
    expect(info.entries_count).toBe(12_000);
  });

  it("is refused by its name if it lists nothing", async () => {
    const error = read({ type: "audio/x-scpls", body: "[playlist]\nNumberOfEntries=0\n" }, undefined, url);
    const message = `${url} is a PLS of which no entry can be fetched; its Content-Type is audio/x-scpls`;
    await expect(error).rejects.toMatchObject({ code: "upstream_invalid", message });
  });
});

describe("an ItemList of a page", () => {
  const videos = [1, 2, 3].map((n) => ({
    "@type": "VideoObject",
    name: `Otter ${n}`,
    url: `/watch/${n}0`,
    contentUrl: `/${n}.mp4`,
    duration: "PT5S",
    thumbnailUrl: `/${n}.jpg`,
    uploadDate: "2024-03-05",
  }));
  const listItems = videos.map((video, index) => ({ "@type": "ListItem", position: index + 1, item: video }));
  const urlItems = [1, 2].map((n) => ({ "@type": "ListItem", position: n, url: `/watch/${n}0`, name: `Otter ${n}` }));
  const list = (itemListElement: unknown, more: object = {}) => ({ "@type": "ItemList", itemListElement, ...more });
  const watchUrls = (...numbers: number[]) => numbers.map((n) => `https://video.example.com/watch/${n}0`);

  it.each([
    ["videos", list(videos)],
    ["items with videos", list(listItems)],
    ["the main entity of a page", { "@type": "CollectionPage", mainEntity: list(listItems) }],
    ["a graph", { "@graph": [{ "@type": "WebSite", name: "x" }, list(listItems)] }],
  ])("is a playlist if it is of videos: %s", async (_what, block) => {
    const info = await resolvePage(`<title>Otters</title>${jsonLd(block)}`);
    expect(info).toMatchObject({ title: "Otters", media_type: "none", formats: [], sources: { entries: "json-ld" } });
    expect(info).not.toHaveProperty("entries_next");
    expect(info.entries_count).toBe(3);
    expect(urlsOf(info)).toEqual(watchUrls(1, 2, 3));
    expect(info.entries?.[0]).toEqual({
      url: "https://video.example.com/watch/10",
      title: "Otter 1",
      duration: 5,
      thumbnail: "https://video.example.com/1.jpg",
      uploaded_at: "2024-03-05",
    });
  });

  it("is a playlist if it is of URLs; those given twice, and the page's own, count once and not at all", async () => {
    const own = { "@type": "ListItem", url: `${pageUrl}#top` };
    const info = await resolvePage(jsonLd(list([...urlItems, own, urlItems[0]], { numberOfItems: 40 })));
    expect(urlsOf(info)).toEqual(watchUrls(1, 2));
    expect(info.entries?.[1]?.title).toBe("Otter 2");
    expect(info.entries_count).toBe(40);
  });

  it("leads to the media of videos that have a name for a page: an id within the front page", async () => {
    const named = videos.map((video, n) => ({ ...video, url: undefined, "@id": `https://video.example.com/#${n}` }));
    expect(urlsOf(await resolvePage(jsonLd(list(named))))).toEqual(
      [1, 2, 3].map((n) => `https://video.example.com/${n}.mp4`),
    );
  });

  it("may have one video if the page is about the list: a channel that begins", async () => {
    const about = (items: unknown[]) => jsonLd({ "@type": "CollectionPage", mainEntity: list(items) });
    expect(urlsOf(await resolvePage(about(listItems.slice(0, 1))))).toEqual(watchUrls(1));
    for (const items of [urlItems.slice(0, 1), [{ ...videos[0], url: pageUrl, contentUrl: undefined }], []])
      expect(await resolvePage(about(items))).not.toHaveProperty("entries");
  });

  it("is listed in slices", async () => {
    const many = Array.from({ length: 450 }, (_, n) => ({ "@type": "ListItem", url: `/watch/${n}0` }));
    const slices = await readAll({ body: jsonLd(list(many)) });
    expect(slices.map((slice) => slice.length)).toEqual([200, 200, 50]);
    expect(slices.flat().map(({ url }) => url)).toEqual(many.map(({ url }) => `https://video.example.com${url}`));
  });

  it.each([
    ["a video of its own", jsonLd({ "@type": "VideoObject", name: "This", contentUrl: "/own.mp4" })],
    ["a video in Open Graph", `<meta property="og:video" content="/own.mp4">`],
    [
      "a player in Open Graph",
      `<meta property="og:video" content="/player"><meta property="og:video:type" content="text/html">`,
    ],
    ["the type of a video", `<meta property="og:type" content="video.other">`],
    ["a video element", `<video src="/own.mp4"></video>`],
    ["a video element that scripts fill", `<video id="player"></video>`],
    ["a player's data", `<script>jwplayer("p").setup({ file: "/own.mp4", title: "This" });</script>`],
    ["a player in a frame", `<iframe src="https://player.example.com/embed/1" allowfullscreen></iframe>`],
  ])("is not the page if it stands beside %s", async (_what, medium) => {
    const info = await resolvePage(`<title>This</title>${medium}${jsonLd(list(listItems))}`);
    expect(info).not.toHaveProperty("entries");
    expect(info.sources).not.toHaveProperty("entries");
  });

  it.each([
    ["one of several", [list(listItems), list(urlItems)]],
    ["of one item", [list(videos.slice(0, 1))]],
    ["of recipes", [list([...listItems, { "@type": "ListItem", item: { "@type": "Recipe", url: "/r" } }])]],
    ["of crumbs", [{ "@type": "BreadcrumbList", itemListElement: urlItems }]],
    ["of URLs of an article", [{ "@type": "NewsArticle", headline: "x" }, list(urlItems)]],
    ["of URLs of a product", [{ "@type": "Product", name: "x", isRelatedTo: list(urlItems) }]],
  ])("is not the page if it is %s", async (_what, blocks) => {
    expect(await resolvePage(jsonLd(...blocks))).not.toHaveProperty("entries");
  });

  it("has the parts of a video that is in several", async () => {
    const parts = videos.map((video) => ({ ...video, url: undefined }));
    const info = await resolvePage(jsonLd({ "@type": "VideoObject", name: "Long", hasPart: parts }));
    expect(info.title).toBe("Long");
    expect(urlsOf(info)).toEqual([1, 2, 3].map((n) => `https://video.example.com/${n}.mp4`));
  });

  it("does not have the parts of a video that is there as a whole", async () => {
    const whole = { "@type": "VideoObject", name: "Long", contentUrl: "/whole.mp4", hasPart: videos };
    const info = await resolvePage(jsonLd(whole));
    expect(info).not.toHaveProperty("entries");
    expect(info.formats).toHaveLength(1);
  });
});

describe("a playlist of WordPress", () => {
  const track = (n: number) => ({
    src: `/uploads/${n}.mp4`,
    type: "video/mp4",
    title: `Otter ${n}`,
    caption: "",
    meta: { length_formatted: `0:0${n}` },
    image: { src: `/uploads/${n}.jpg`, width: 48, height: 64 },
  });
  const playlist = (...tracks: unknown[]) =>
    `<div class="wp-playlist wp-video-playlist"><video controls preload="none"></video>
    <noscript><ol><li><a href="/uploads/1.mp4">Otter 1</a></li></ol></noscript>
    <script type="application/json" class="wp-playlist-script">${JSON.stringify({ type: "video", tracklist: true, tracks })}</script></div>`;
  const at = (path: string) => new URL(path, pageUrl).href;

  it("is the entries of its page, with titles, durations and pictures", async () => {
    const info = await resolvePage(
      `<title>Otters</title>${playlist(track(1), track(2), track(1), { src: "ftp://x/3" })}`,
    );
    expect(info).toMatchObject({ title: "Otters", media_type: "none", formats: [], entries_count: 2 });
    expect(info.sources["entries"]).toBe("player");
    expect(info.entries).toEqual(
      [1, 2].map((n) => ({
        url: at(`/uploads/${n}.mp4`),
        title: `Otter ${n}`,
        duration: n,
        thumbnail: at(`/uploads/${n}.jpg`),
        uploaded_at: null,
      })),
    );
  });

  it("continues those before it on the page", async () => {
    const info = await resolvePage(playlist(track(1), track(2)) + playlist(track(3)));
    expect(urlsOf(info)).toEqual([1, 2, 3].map((n) => at(`/uploads/${n}.mp4`)));
  });

  it("of one video is that video", async () => {
    const info = await resolvePage(playlist(track(1)));
    expect(info).not.toHaveProperty("entries");
    expect(info.formats.map(({ url }) => url)).toEqual([at("/uploads/1.mp4")]);
  });

  it.each([
    ["a video that the page states", `<meta property="og:video" content="/own.mp4">`],
    ["a video element", `<video src="/own.mp4" controls></video>`],
  ])("is not the page beside %s", async (_, own) => {
    const info = await resolvePage(own + playlist(track(1), track(2)));
    expect(info).not.toHaveProperty("entries");
    expect(info.formats.map(({ url }) => url)).toEqual([at("/own.mp4")]);
  });

  it.each([
    "",
    "[]",
    "null",
    '{"tracks":null}',
    '{"tracks":[null,1,"x",{"src":1},{"src":"/1.mp4","meta":[],"image":1}]}',
  ])("that holds %j is none", async (source) => {
    const page = `<title>x</title><script type="application/json" class="wp-playlist-script">${source}</script>`;
    expect(await resolvePage(page)).not.toHaveProperty("entries");
  });
});
