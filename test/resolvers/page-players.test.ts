import { describe, expect, it } from "vitest";
import type { PageInfo } from "../../src/model/page-info.ts";
import { pageUrl, resolveFrom, resolvePage } from "./page/saved-client.ts";

const site = "https://video.example.com";
const script = (source: string) => `<title>Otters</title><script>${source}</script>`;
const json = (value: unknown) => JSON.stringify(value);
const attribute = (value: unknown) => json(value).replaceAll("&", "&amp;").replaceAll('"', "&quot;");
const urlsOf = ({ formats }: PageInfo) => formats.map(({ url }) => url).toSorted();

describe("the data of a player", () => {
  /** By name: a page and the URLs of its formats. */
  const setUps: Record<string, [page: string, ...urls: string[]]> = {
    "JW Player's playlist, as an object literal": [
      script(`jwplayer("p").setup({
        // comment with 'a quote
        playlist: [{ title: 'Otters', image: "/p.jpg", sources: [
          { file: '//cdn.example.com/1.m3u8' }, { file: "https://cdn.example.com/1.mp4", label: "720p", },
        ], }], width: "100%", /* "x */ autostart: !1 });`),
      "https://cdn.example.com/1.m3u8",
      "https://cdn.example.com/1.mp4",
    ],
    "JW Player's file": [script(`jwplayer('p').setup({file:"\\/v\\/1.mp4",image:"/1.jpg"})`), `${site}/v/1.mp4`],
    "the variables of a Flash player": [
      `<embed src="/player.swf" flashvars="file=https%3A%2F%2Fcdn.example.com%2F1.flv&amp;image=/a.jpg">`,
      "https://cdn.example.com/1.flv",
    ],
    "the URL of a Flash player": [
      `<embed src="/player.swf?file=https%3A%2F%2Fcdn.example.com%2F1.flv">`,
      "https://cdn.example.com/1.flv",
    ],
    "the URL of a player in a frame": [
      `<iframe src="/players/video?title=Otters&amp;source=https%3A%2F%2Fcdn.example.com%2F1.m3u8"></iframe>`,
      "https://cdn.example.com/1.m3u8",
    ],
    "the URL of a player in a frame that is loaded late": [
      `<iframe data-lazy-src="/players/video?source=https%3A%2F%2Fcdn.example.com%2F1.m3u8"></iframe>`,
      "https://cdn.example.com/1.m3u8",
    ],
    "addVariable of a Flash player": [
      script(`so.addVariable("width", "3"); so.addVariable("file", "http://cdn.example.com/1.mp4");`),
      "http://cdn.example.com/1.mp4",
    ],
    "video.js' data-setup": [
      `<video-js data-setup='{"sources":[{"type":"video/mp4","src":"/1.mp4"}]}'></video-js>`,
      `${site}/1.mp4`,
    ],
    "video.js' src()": [
      script(`var player = videojs("p"); player.src({type: "application/x-mpegURL", src: "/1.m3u8"});`),
      `${site}/1.m3u8`,
    ],
    "Flowplayer's clip": [
      script(`flowplayer("#p", {clip: {sources: [{type: "video/webm", src: "/1.webm"}], title: "Otters"}})`),
      `${site}/1.webm`,
    ],
    "Flowplayer 3": [
      script(`flowplayer("player", "/f.swf", {clip: {url: 'http://cdn.example.com/1.flv'}})`),
      "http://cdn.example.com/1.flv",
    ],
    "Kaltura's media": [
      script(`kalturaPlayer.setMedia({sources:{id:"1_a",duration:61,poster:"/p.jpg",
        hls:[{id:"1_a_hls",url:"https://cdn.example.com/1.m3u8",mimetype:"application/x-mpegURL"}],
        progressive:[{id:"2",url:"https://cdn.example.com/1.mp4",bandwidth:800000,height:360,mimetype:"video/mp4"}]}})`),
      "https://cdn.example.com/1.m3u8",
      "https://cdn.example.com/1.mp4",
    ],
    "Brightcove's renditions": [
      `<div data-video="${attribute({ name: "Otters", length: 61000, renditions: [{ defaultURL: `${site}/1.mp4?a=1&b=2`, frameHeight: 540, encodingRate: 900000 }] })}"></div>`,
      `${site}/1.mp4?a=1&b=2`,
    ],
    "plyr's source": [
      script(
        `player.source = { type: 'video', title: 'Otters', sources: [{ src: '/1.mp4', type: 'video/mp4', size: 720 }] };`,
      ),
      `${site}/1.mp4`,
    ],
    "hls.js' loadSource": [script("hls.loadSource(`/1.m3u8`); hls.attachMedia(v)"), `${site}/1.m3u8`],
    "dash.js' initialize": [
      script(`player.initialize(document.querySelector("video"), "/1.mpd", true)`),
      `${site}/1.mpd`,
    ],
    __NEXT_DATA__: [
      `<script id="__NEXT_DATA__" type="application/json">${json({ props: { pageProps: { video: { title: "Otters", streams: { hls: `${site}/1.m3u8` } } } } })}</script>`,
      `${site}/1.m3u8`,
    ],
    "a variable's state": [
      script(
        `window.__INITIAL_STATE__ = window.__INITIAL_STATE__ || {"clip":{"name":"Otters","videoUrl":"https:\\/\\/cdn.example.com\\/1.mp4"}};(function(){})()`,
      ),
      "https://cdn.example.com/1.mp4",
    ],
    "JSON in a text": [
      script(`window["data"] = JSON.parse("{\\"url\\":\\"https:\\\\/\\\\/cdn.example.com\\\\/1.mp4\\"}")`),
      "https://cdn.example.com/1.mp4",
    ],
    "assignments to properties": [
      script(`player.video.src = "/1.flv"; player.video.iosSrc = "/1.m3u8";`),
      `${site}/1.flv`,
      `${site}/1.m3u8`,
    ],
    "a list of URLs": [script(`var mediaURLs = ['/1.mp4'], titles = ['Otters'];`), `${site}/1.mp4`],
    "data-config": [`<div class=p data-config='{"media":{"mp4":"/1.mp4","title":"Otters"}}'>`, `${site}/1.mp4`],
    "data-video-src": [`<div data-video-src=//cdn.example.com/1.mp4></div>`, "https://cdn.example.com/1.mp4"],
    "data in base64": [
      `<div data-player="${btoa(json({ poster: "/p.jpg", sources: [{ file: "/1.mp4" }] }))}">`,
      `${site}/1.mp4`,
    ],
    "data that a script decodes from base64": [
      script(`start(JSON.parse(atob('${btoa(json([{ poster: "/p.jpg", file: "/1.mp4" }]))}')))`),
      `${site}/1.mp4`,
    ],
    "a URL in base64": [`<div data-video="${btoa("https://cdn.example.com/1.mp4")}">`, "https://cdn.example.com/1.mp4"],
    "a URL that a script decodes from base64": [
      script(`player.setup({file: atob("${btoa("https://cdn.example.com/1.mp4?a")}")})`),
      "https://cdn.example.com/1.mp4?a",
    ],
    "a URL in base64 in the URL of a player's frame": [
      `<iframe src="/player/?url=${btoa("https://cdn.example.com/1.m3u8")}">`,
      "https://cdn.example.com/1.m3u8",
    ],
    "data that is percent-encoded": [
      `<div data-player="${encodeURIComponent(json({ file: "/1.mp4" }))}">`,
      `${site}/1.mp4`,
    ],
    "a link to download": [`<a download href="/1.mp4">Save</a>`, `${site}/1.mp4`],
    "a link whose URL says that it downloads": [
      `<a href="/get/1.mp4/?download=true">720p</a>`,
      `${site}/get/1.mp4/?download=true`,
    ],
    "a link to download an old video": [`<a download href="/1.mpg">Save</a>`, `${site}/1.mpg`],
    "a link in whose place a player is put": [
      `<a href="/1.flv" style="display:block" id="player"></a>`,
      `${site}/1.flv`,
    ],
    "a link that a lightbox plays": [`<a data-fancybox href="/1.mp4"><img src="/p.jpg"></a>`, `${site}/1.mp4`],
    "the main item of an article": [
      script(`x=${json({ promo_items: { basic: { type: "video", streams: [{ url: "/1.mp4" }] } } })}`),
      `${site}/1.mp4`,
    ],
    "a hidden input": [`<input type=hidden name="video_url" value="/1.mp4">`, `${site}/1.mp4`],
    "a URL without an extension, beside its type": [
      script(`player.src({type: "application/x-mpegURL", src: "/playlist/1"})`),
      `${site}/playlist/1`,
    ],
    "a URL without an extension, beside an unregistered type": [
      script(`player.src({type: "application/mpegurl", src: "/playlist/1"})`),
      `${site}/playlist/1`,
    ],
    "a URL without an extension, by its name": [
      script(`setup({"hls": "https://cdn.example.com/playlist/1"})`),
      "https://cdn.example.com/playlist/1",
    ],
    "a URL without an extension, by a longer name": [
      script(`var clip = {title: "Otters", dashManifestUrl: "https:\\/\\/cdn.example.com\\/1"}`),
      "https://cdn.example.com/1",
    ],
    "a URL without an extension, beside its format": [
      script(`setup({sources: [{format: "hls", url: "/playlist/1"}]})`),
      `${site}/playlist/1`,
    ],
    "an extension in upper case": [script(`setup({file: "/1.MP4"})`), `${site}/1.MP4`],
    "a rare extension": [script(`setup({file: "/1.ogv"})`), `${site}/1.ogv`],
    "an old extension": [script(`setup({file: "/1.wmv"})`), `${site}/1.wmv`],
    "a set-up that is cut between two chunks": [
      `<title>Otters</title><script>${" ".repeat(65_480)}setup({file: "/${"1".repeat(25)}.mp4"})</script>`,
      `${site}/${"1".repeat(25)}.mp4`,
    ],
    "rows of React's server components": [
      script(
        `self.__next_f.push([1,"5:[\\"$\\",{\\"video\\":{\\"title\\":\\"Otters\\",\\"videoUrl\\":\\"/1.mp4\\"}}]\\n"])`,
      ),
      `${site}/1.mp4`,
    ],
    "such rows, cut anywhere": [
      script(`self.__next_f.push([1,"le\\":\\"Otters\\",\\"videoUrl\\":\\"/1.mp4\\"}}]\\n"])`),
      `${site}/1.mp4`,
    ],
    "a player's tags in a text": [
      script(`var clip = {"embed": "<video controls><source src=\\"/1.mp4\\"></video>", "title": "Otters"}`),
      `${site}/1.mp4`,
    ],
    "files by their heights": [
      script(`var q = {"1080": "/1.mp4", "360": "/2.mp4"}; play(q)`),
      `${site}/1.mp4`,
      `${site}/2.mp4`,
    ],
    "Nuxt's list of values that refer to each other": [
      `<script type="application/json" id="__NUXT_DATA__">${json([
        ["Reactive", 1],
        { video: 2, related: 6, self: 0 },
        { title: 3, src: 4, duration: 5, again: 2 },
        "Otters",
        "/1.mp4",
        93,
        [7],
        { title: 8, src: 9 },
        "Foxes",
        "/2.mp4",
      ])}</script>`,
      `${site}/1.mp4`,
    ],
    "React Router's list, names by index too": [
      script(`c.enqueue(${json(json([{ _1: 2 }, "video", { _3: 4 }, "hlsUrl", "/1.m3u8", -5]))})`),
      `${site}/1.m3u8`,
    ],
    "a list of URLs with labels": [
      script(`new Playerjs({file: "[360p]https://cdn.example.com/1.mp4,[HD 720p]/2.mp4"})`),
      "https://cdn.example.com/1.mp4",
      `${site}/2.mp4`,
    ],
    "such a list in an attribute": [
      `<div data-file="[360p]/1.mp4,[720p]/2.mp4"></div>`,
      `${site}/1.mp4`,
      `${site}/2.mp4`,
    ],
    "a file whose URL ends with a slash": [
      script(`var flashvars = {video_url: '/get_file/1.mp4/', preview_url: '/1.jpg'};`),
      `${site}/get_file/1.mp4/`,
    ],
    "a URL without an extension, in an attribute": [`<div data-hls-url="/playlist/1"></div>`, `${site}/playlist/1`],
    "URLs without extensions, beside the types of their files": [
      script(`setup({sources: [{file: "/stream/1", type: "mp4"}, {file: "/stream/2", type: "video/mp4"}]})`),
      `${site}/stream/1`,
      `${site}/stream/2`,
    ],
    "x-data": [`<div x-data="{ open: false, src: '/1.m3u8' }"></div>`, `${site}/1.m3u8`],
    "an embedded file": [`<embed src="/1.mp4" type="video/mp4">`, `${site}/1.mp4`],
    "an object with its parameters": [
      `<object data="/1.mp4"><param name="src" value="/1.mp4"><param name="play" value="true"></object>`,
      `${site}/1.mp4`,
    ],
    "links to download that differ in quality": [
      `<a class=download href="/otters-720p.mp4">720p</a> <a class=download href="/otters-1080p.mp4">1080p</a>
       <a class=download href="/otters-hd.webm">WebM</a> <a class=download href="/foxes-720p.mp4">Foxes</a>`,
      `${site}/otters-1080p.mp4`,
      `${site}/otters-720p.mp4`,
      `${site}/otters-hd.webm`,
    ],
    "a custom element": [`<media-player src="/1.m3u8"></media-player>`, `${site}/1.m3u8`],
    "after regular expressions with quotes": [
      script(String.raw`a = /'/; b = /[/"]/g; c = /\/'/; d = /[\]"/]/; setup({file: "/1.mp4"})`),
      `${site}/1.mp4`,
    ],
    "after a line with an apostrophe": [script(`<!-- The otter's film\nsetup({file: "/1.mp4"})`), `${site}/1.mp4`],
    "after a long line with an apostrophe": [
      script(`<!-- The otter's ${"long ".repeat(30)}film\nsetup({file: "/1.mp4"})`),
      `${site}/1.mp4`,
    ],
  };

  it.each(Object.keys(setUps))("states the medium: %s", async (name) => {
    const [page = "", ...urls] = setUps[name] ?? [];
    const info = await resolvePage(page);
    expect(urlsOf(info)).toEqual(urls);
    expect(info.sources["formats"]).toBe("player");
    expect(info.media_type).toBe("video");
  });

  it("states what stands beside the medium", async () => {
    const info = await resolvePage(
      script(`setup({title: "Otters", duration: 90500, poster: "/p.jpg", sources: [
        {src: "/1.mp4", type: 'video/mp4; codecs="avc1.64001F, mp4a.40.2"', width: 1280, height: 720, bitrate: 1200000, size: 1048576}],
        tracks: [{file: "/en.vtt", kind: "captions", label: "English", srclang: "en"}, {file: "/t.vtt", kind: "thumbnails"},
          {file: "/de.m3u8", kind: "subtitles", srclang: "de"}, {file: "/other.m3u8"}]})`),
    );
    expect(info).toMatchObject({
      duration: 90.5,
      thumbnails: [{ url: `${site}/p.jpg` }],
      formats: [{ width: 1280, height: 720, tbr: 1200, filesize: 1048576, vcodec: "avc1.64001F", acodec: "mp4a.40.2" }],
      subtitles: {
        en: [{ url: `${site}/en.vtt`, ext: "vtt", name: "English" }],
        de: [{ url: `${site}/de.m3u8`, ext: "m3u8", name: null }],
      },
      sources: { duration: "player", thumbnails: "player", subtitles: "player" },
    });
    expect(Object.keys(info.subtitles)).toEqual(["en", "de"]);
  });

  it.each(["m3u8", "mpd", "mp4", "mp3", "m4v", "m4a", "mov", "webm", "flv", "M3U8", "MP4"])(
    "is found in a long script by a file's extension %s",
    async (extension) => {
      const code = "x.m = y.map(z.min); ".repeat(1_000);
      const info = await resolvePage(script(`${code}setup({file: "/1.${extension}"}); ${code}`));
      expect(urlsOf(info)).toEqual([`${site}/1.${extension}`]);
    },
  );

  it.each([
    ["labels if they are heights", ["720p", "480p"], 2],
    ["labels if they are qualities", ["HD", "SD"], 2],
    ["labels if they are formats", ["MP4 Video", "WebM"], 2],
    ["titles of other videos if they are names of files", ["beavers.mp4", "foxes.mp4"], 0],
  ])("takes titles of its files for %s", async (_, titles, count) => {
    const sources = titles.map((title, index) => ({ file: `/${index}.mp4`, title }));
    const info = await resolvePage(script(`setup(${json({ title: "Otters", sources })})`));
    expect(info.formats).toHaveLength(count);
  });

  it("is read wherever a long text with escape sequences is cut", async () => {
    for (let length = 32_700; length < 32_750; length += 1) {
      const text = json({ a: "x".repeat(length), clip: json({ file: "/1.mp4" }) });
      const info = await resolvePage(script(`setup(JSON.parse(${json(text)}))`));
      expect(urlsOf(info)).toEqual([`${site}/1.mp4`]);
    }
  });

  it("is read after brackets that are nested 1,000 deep", async () => {
    const deep = `${"[".repeat(1_000)}"/0.mp4"${"]".repeat(1_000)}`;
    const info = await resolvePage(script(`x = ${deep}; setup({title: "Otters", file: "/1.mp4"})`));
    expect(urlsOf(info)).toEqual([`${site}/1.mp4`]);
  });

  it.each([
    ["a script", (clip: string) => `<script>var clip = ${clip}</script>`],
    ["two chunks", (clip: string) => `<script>x${"é".repeat(32_754)} clip = ${clip}</script>`],
    ["an attribute", (clip: string) => `<div data-clip='${clip}'></div>`],
  ])("is decoded as the page is, in %s", async (_, pageOf) => {
    const clip = json({
      file: "/ñ/1.mp4",
      tracks: [{ file: "/ñ.vtt", srclang: "es", label: "Niños" }],
    });
    for (const encoding of ["utf8", "latin1"] as const) {
      const type = `text/html; charset=${encoding === "utf8" ? "utf-8" : "iso-8859-1"}`;
      const info = await resolveFrom({
        [pageUrl]: { type, body: Buffer.from(pageOf(clip), encoding) },
      });
      expect(urlsOf(info)).toEqual([`${site}/%C3%B1/1.mp4`]);
      expect(info.subtitles["es"]).toMatchObject([{ url: `${site}/%C3%B1.vtt`, name: "Niños" }]);
    }
  });

  it.each([
    ["its label", { label: "HD 720p" }],
    ["a label of thousands", { label: "4K" }, 2160],
    ["a size that is too small for a file", { size: 720 }],
    ["the name of its file", { file: "/otters_720p.mp4" }],
    ["the name of what it is in", { file: null, "720": { url: "/2.mp4" } }],
  ])("states the height of a file by %s", async (_, stated, height = 720) => {
    expect(await formatsOf(stated)).toMatchObject([{ height, filesize: null }]);
  });

  it.each([
    ["a codec", { label: "h264" }],
    ["any other number", { file: "/otters-720.mp4", label: "12" }],
  ])("does not take %s for a height", async (_, stated) => {
    expect(await formatsOf(stated)).toMatchObject([{ height: null, filesize: null }]);
  });

  async function formatsOf(source: object): Promise<PageInfo["formats"]> {
    const page = script(`setup({sources: [${json({ file: "/1.mp4", ...source })}]})`);
    return (await resolvePage(page)).formats;
  }

  it.each([
    ["duration", 18_000, 18_000],
    ["duration", 90_500, 90.5],
    ["durationMs", 9_500, 9.5],
    ["durationSeconds", 21_600, 21_600],
  ])("states %s %d, which is %d seconds", async (name, value, seconds) => {
    const info = await resolvePage(script(`setup(${json({ file: "/1.mp4", [name]: value })})`));
    expect(info.duration).toBe(seconds);
  });

  it("is not read if the page states a medium otherwise", async () => {
    const info = await resolvePage(`<meta property="og:video" content="/1.mp4">${script(`setup({file: "/2.mp4"})`)}`);
    expect(urlsOf(info)).toEqual([`${site}/1.mp4`]);
  });

  it("yields to what other vocabularies state", async () => {
    const info = await resolvePage(
      `<meta property="og:type" content="video.other"><meta property="video:duration" content="61">${script(`setup({file: "/1.mp4", duration: 62})`)}`,
    );
    expect(info).toMatchObject({ duration: 61, sources: { duration: "og", formats: "player" } });
  });

  const nothing: Record<string, string> = {
    promotions: script(
      `var features = {"grok_promo_video_url": {"value": "/promo.mp4"}, "upsell": {"video": "/u.mp4"}}`,
    ),
    advertisements: script(`setup({ads: {preroll: {url: "/ad.mp4"}}, adUrl: "/ad2.mp4"})`),
    previews: script(`var card = {previewUrl: "/1.mp4", id: 12}`),
    captions: script(`setup({file: "/1.mp4.srt", captions: [{url: "/1.mp4"}]})`),
    "related videos": script(`var related = [{title: "Foxes", file: "/2.mp4"}]`),
    "one of many": script(
      `var items = ${json([1, 2, 3, 4, 5].map((n) => ({ title: `Clip ${n}`, file: `/${n}.mp4` })))}`,
    ),
    "texts in parts": script(`setup({file: "/v/" + id + "/1.mp4", src: base + "/2.mp4", hls: \`/\${id}.m3u8\`})`),
    comments: script(`/* setup({file: "/1.mp4"}) */ // file = "/2.mp4";`),
    "names that say nothing": script(`var a = {"value": "/1.mp4", "x": "/2.mp4"}`),
    "other URLs": script(`setup({file: "rtmp://example.com/mp4:1.mp4", src: "blob:x/1.mp4", url: "mp4:1.mp4"})`),
    decoration: `<video class=hero data-src="/1.mp4" loop muted playsinline></video>`,
    "types that a program knows": script(
      `var types = {hls: "application/x-mpegURL"}; if (type == "application/dash+xml") play("hls");`,
    ),
    text: `<p>The file "1.mp4" is at https://example.com/1.mp4?x</p>`,
  };
  it.each(Object.keys(nothing))("states no medium: %s", async (name) => {
    expect((await resolvePage(nothing[name] ?? "")).formats).toEqual([]);
  });

  it("states no medium of a front page", async () => {
    const front = `${site}/`;
    const page = { [front]: { body: script(`setup({file: "/1.mp4"})`) } };
    expect((await resolveFrom(page, front)).formats).toEqual([]);
  });

  it.each([
    ["its title", { title: "Otters" }],
    ["its URL", { url: pageUrl }],
    ["its id", { id: "otters-4711" }],
    ["its duration", { duration: 61 }],
  ])("states the page's own of several media, by %s", async (_, stated) => {
    const others = [1, 2, 3, 4].map((n) => ({
      title: `Clip ${n}`,
      id: n,
      duration: n,
      file: `/${n}.mp4`,
    }));
    const items = [...others, { ...stated, file: "/own.mp4" }];
    const url = `${site}/watch/otters-4711`;
    const body = `<link rel=canonical href="${pageUrl}"><meta property="video:duration" content="61">${script(`var list = ${json(items)}`)}`;
    expect(urlsOf(await resolveFrom({ [url]: { body } }, url))).toEqual([`${site}/own.mp4`]);
  });

  it("states the first of a playlist of a page that calls itself a video", async () => {
    const items = [1, 2, 3, 4, 5].map((n) => ({ title: `Clip ${n}`, file: `/${n}.mp4` }));
    const info = await resolvePage(
      `<meta property="og:type" content="video.other">${script(`setup({playlist: ${json(items)}})`)}`,
    );
    expect(urlsOf(info)).toEqual([`${site}/1.mp4`]);
  });

  it("states a preview, but no trailer, only if the page names nothing else of its video", async () => {
    const read = async (source: string) =>
      urlsOf(await resolvePage(`<meta property="og:type" content="video.other">${script(source)}`));
    const clip = { name: "Foxes", length: "00:40", previewUrl: "/1.mp4" };
    const clipSource = `var clip = ${json(clip)}`;
    expect(await read(clipSource)).toEqual([`${site}/1.mp4`]);
    expect(await read(`${clipSource}; setup({file: "/2.mp4"})`)).toEqual([`${site}/2.mp4`]);
    expect(await read(clipSource.replace("previewUrl", "trailerUrl"))).toEqual([]);
  });

  it("does not state a medium whose duration differs from the page's", async () => {
    const info = await resolvePage(
      `<meta property="og:type" content="video.other"><meta property="video:duration" content="600">${script(`setup([{file: "/1.mp4", duration: 15}, {file: "/2.mp4", duration: 601}])`)}`,
    );
    expect(urlsOf(info)).toEqual([`${site}/2.mp4`]);
  });

  it("is found in the page's own encoding, wherever the bytes are cut", async () => {
    const html = `${"x".repeat(65_531)}${script(`setup({title: "Füchse", file: "/é.mp4"})`)}`;
    async function* bytes() {
      for (const byte of [html.slice(0, 65_600), html.slice(65_600)]) yield Buffer.from(byte, "latin1");
    }
    const type = "text/html; charset=iso-8859-1";
    const info = await resolveFrom({ [pageUrl]: { type, body: bytes } });
    expect(urlsOf(info)).toEqual([`${site}/%C3%A9.mp4`]);
  });
});
