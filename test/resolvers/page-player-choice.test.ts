import { describe, expect, it } from "vitest";
import type { PageInfo } from "../../src/model/page-info.ts";
import { resolveFrom } from "./page/saved-client.ts";

const site = "https://video.example.com";
const url = `${site}/watch/otters-cross-the-weir-412`;
const script = (source: string) => `<script>${source}</script>`;
const state = (value: unknown) => script(`window.STATE = ${JSON.stringify(value)}`);
const head = `<title>Otters cross the weir | Rivers</title>`;
const urlsOf = ({ formats }: PageInfo) => formats.map((format) => format.url).toSorted();

async function read(body: string): Promise<string[]> {
  return urlsOf(await resolveFrom({ [url]: { body: body.includes("<title>") ? body : head + body } }, url));
}

const clips = (count: number) => Array.from({ length: count }, (_, n) => ({ title: `Clip ${n}`, file: `/${n}.mp4` }));

describe("the medium that is a page's own", () => {
  it.each([
    ["a part of it before the site's name", "Otters | Rivers", { title: "Otters" }],
    ["it without references", "Otters &amp; foxes", { title: "Otters &amp; foxes" }],
    ["it under a foreign word for title", "Otters cross the weir", { titel: "Otters cross the weir" }],
    ["it under any name", "Otters cross the weir", { navn: "Otters cross the weir" }],
    ["a caption", "Otters cross the weir", { caption: "Otters cross the weir" }],
    ["one of few ideographs", "水獺過河 | Rivers", { title: "水獺過河" }],
    ["with the same number", "Otters, episode 12", { title: "Otters, episode 12" }],
  ])("has its title: %s", async (_, title, stated) => {
    const other = { title: "Otters, episode 1", file: "/1.mp4" };
    const page = `<title>${title}</title>${state({ clips: [other, { ...stated, file: "/own.mp4" }] })}`;
    expect(await read(page)).toEqual([`${site}/own.mp4`]);
  });

  it("has an id at the end of the page's URL, however short", async () => {
    const short = `${site}/clip/412`;
    const page = head + state({ clips: [411, 412].map((id) => ({ id, file: `/${id}.mp4` })) });
    expect(urlsOf(await resolveFrom({ [short]: { body: page } }, short))).toEqual([`${site}/412.mp4`]);
  });

  it.each([
    ["before a list", script(`setup({file: "/own.mp4"})`) + state({ items: clips(6) })],
    ["after a list", state({ items: clips(2) }) + script(`setup({file: "/own.mp4"})`)],
    [
      "among tags that are alike",
      script(`hls.loadSource("/own.mp4")`) +
        [1, 2, 3, 4].map((n) => `<a data-title="Clip ${n}" data-src="/${n}.mp4">x</a>`).join(""),
    ],
    [
      "with a blank file to test whether the browser plays",
      script(`new Plyr("#p", {blankVideo: "/blank.mp4"}); player.source = {sources: [{src: "/own.mp4"}]}`),
    ],
    [
      "after an advertisement's player",
      script(`adPlayer.src({src: "/sponsors/1.mp4"}); player.src({src: "/own.mp4"})`),
    ],
  ])("is what a player is set up with, %s", async (_, page) => {
    expect(await read(page)).toEqual([`${site}/own.mp4`]);
  });

  it("is the one of a list of streams that is as long as the page says", async () => {
    const streams = [61, 754, 300].map((len) => ({ len, url: `/${len}.mp4` }));
    const page = `<meta property="video:duration" content="754">${state({ streams })}`;
    expect(await read(page)).toEqual([`${site}/754.mp4`]);
  });

  it("has the page's duration, whatever an advertisement before it has", async () => {
    const page = script(
      `var flashvars = {video_url: "/own.mp4/?embed=true", adv_pre_src: "/cam.mp4", adv_pre_duration: "15"}`,
    );
    expect(await read(`<meta property="video:duration" content="387">${head}${page}`)).toEqual([
      `${site}/own.mp4/?embed=true`,
    ]);
  });

  it("has its title, although it is in a folder of sounds", async () => {
    const page = state({ title: "Otters cross the weir", sources: [{ url: "/sounds/own.mp3" }] });
    expect(await read(page)).toEqual([`${site}/sounds/own.mp3`]);
  });

  it("has representations, however many", async () => {
    const representation = [1080, 720, 540, 360].map((height) => ({
      height,
      url: `/${height}.m3u8`,
      backupUrl: [`https://cdn.example.com/${height}.m3u8`],
    }));
    expect(await read(state({ adaptationSet: [{ id: 1, representation }] }))).toHaveLength(8);
  });

  it("is audio with its title rather than a video without", async () => {
    const page = state({
      episode: { title: "Otters cross the weir", url: "/own.mp3" },
      channel: { videos: [{ title: "Studio", url: "/tour.mp4" }] },
    });
    expect(await read(page)).toEqual([`${site}/own.mp3`]);
  });

  it("is none of a list whose elements have other titles, unless the first has the page's", async () => {
    const page = script(`new Playerjs({file: ${JSON.stringify(clips(3))}})`);
    expect(await read(`<meta property="og:type" content="video.episode">${head}${page}`)).toEqual([]);
    const own = [{ title: "Otters cross the weir", file: "/own.mp4" }, ...clips(3)];
    const listed = script(`new Playerjs({file: ${JSON.stringify(own)}})`);
    expect(await read(listed)).toEqual([`${site}/own.mp4`]);
  });

  const own = { title: "Otters cross the weir", id: 412 };
  const others: Record<string, string> = {
    "a related video within the page's own record": state({
      article: { ...own, relatedVideo: { id: 7, title: "Beavers", url: "/7.mp4" } },
    }),
    "a part of the page's design in its own record": state({
      page: { ...own, heroVideo: { desktop: "https://cdn.example.com/hero.mp4" } },
    }),
    "a preview of the page's own": state({ video: { ...own, previewUrl: "/preview.mp4" } }),
    "a list of results": state({ hits: clips(3) }),
    "a list of nodes": state({
      edges: clips(2).map(({ title, file }) => ({ node: { caption: title, file } })),
    }),
    "a list of files": state({ files: clips(3) }),
    "one of several by their ids": state({
      items: {
        7001: { title: "Beavers", file: "/1.mp4" },
        7002: { title: "Foxes", file: "/2.mp4" },
      },
    }),
    "one of several tags that are alike": [1, 2, 3]
      .map((n) => `<div class="card" data-video="/${n}.mp4"></div>`)
      .join(""),
    "one of another page": state({
      picks: [{ title: "Beavers", url: "/watch/beavers", file: "/7.mp4" }],
    }),
    "in the URL of an advertiser's frame": `<iframe src="https://ads.example.com/play?file=https%3A%2F%2Fcdn.example.com%2F1.mp4"></iframe>`,
    "in the URL of a hidden frame": `<iframe hidden src="/play?file=https%3A%2F%2Fcdn.example.com%2F1.mp4"></iframe>`,
    "a moving picture of another page":
      `<meta property="og:type" content="video.other">` +
      [1, 2].map((n) => `<img data-anim="${site}/${n}.mp4" alt="Clip ${n}">`).join(""),
    comments: state({ comments: [{ id: 1, video_url: "/1.mp4" }] }),
    "links to download several files": [1, 2, 3]
      .map((n) => `<a download href="/sermons/2017-06-${n}0.mp3">Download</a>`)
      .join(""),
    "links to download files of one name": [5502, 5503, 5504]
      .map((n) => `<a download href="/${n}/clip-1080p.mp4">Download</a>`)
      .join(""),
    "links that a lightbox plays": [1, 2, 3]
      .map((n) => `<a class="popup-video" href="/${n}.mp4"><img src="/${n}.jpg"></a>`)
      .join(""),
    "a link in the text": `<p>Here is <a href="/others/1.mp4">what they recorded</a>.</p>`,
    "a background": `<div class="w-background-video" data-video-urls="https://cdn.example.com/1.mp4,https://cdn.example.com/1.webm"></div>`,
    "a loop without sound": `<div data-mp4="/1.mp4" data-autoplay="true" data-loop="true"></div>`,
    "a loop that is loaded late": `<video autoplay loop muted><source data-src="/1.mp4"></video>`,
    "settings of a loop": `<div data-props='{"media": {"src": "/1.mp4", "loop": true, "muted": true}}'></div>`,
    "a plug-in for backgrounds": script(`$("#hero").vidbg({"mp4": "/1.mp4"}, {loop: true})`),
    "sounds of the page": script(`var chat = {"notification": {"audioUrl": "/n.mp3"}}; new Audio("/sounds/add.mp3")`),
    "what a program fills in": script(
      `var a = {hls: "https://cdn.example.com/%s/1.m3u8", file: "https://cdn.example.com/:id.mp4", src: "https://cdn.example.com/*.mp4"}`,
    ),
    "a frame of a file": state({
      works: [{ id: 1, coverUrl: "https://cdn.example.com/1.mp4?x-process=video/snapshot,t_1" }],
    }),
    "a path within a store": state({
      videoInfo: { qualities: [{ url: "video/1/720p/mp4/file.mp4" }] },
    }),
  };
  it.each(Object.keys(others))("is not %s", async (name) => {
    expect(await read(others[name] ?? "")).toEqual([]);
  });
});

describe("the URL of a medium", () => {
  const json = (value: unknown) => JSON.stringify(value);
  const video = { title: "Otters cross the weir", src: "/own.mp4" };
  const pushed = json(`4:["$","$L9",null,{"video":${json(video)},"other":"${"x".repeat(40)}"}]\n`).slice(1, -1);
  const push = (text: string) => script(`self.__next_f.push([1,"${text}"])`);
  const pages: Record<string, string> = {
    "is in a stream that is cut in it":
      push(pushed.slice(0, pushed.indexOf("own") + 1)) + push(pushed.slice(pushed.indexOf("own") + 1)),
    "is an argument of the function that makes a page's state": script(
      `window.__NUXT__=(function(a,b,c){return {data:[{video:{title:"a,b",src:b}}],x:[c,a]}}("a","/own.mp4",{}))`,
    ),
    "is an argument that is named before a longer one": script(
      `a=(function(a,b){return {data:[{src:a},{x:[${"b,".repeat(100)}b]}]}}("/own.mp4","${"x".repeat(200)}"))`,
    ),
    "is in the state that Angular writes": `<script id="ng-state" type="application/json">{&q;v&q;:{&q;title&q;:&q;A &a; B&q;,&q;src&q;:&q;/own.mp4&q;}}</script>`,
    "is in a call in an attribute": `<div x-data="player({ src: '/own.mp4' })"></div>`,
    "is percent-encoded": script(`setup({file: "https%3A%2F%2Fvideo.example.com%2Fown.mp4"})`),
    "has any name if it is complete": state({ fichier: `${site}/own.mp4` }),
    "is the argument of load": script(`player.load("/own.mp4")`),
    "has the name that jPlayer gives it": script(`$(this).jPlayer("setMedia", {m4v: "/own.mp4"})`),
  };
  it.each(Object.keys(pages))("%s", async (name) => {
    expect(await read(pages[name] ?? "")).toEqual([`${site}/own.mp4`]);
  });

  it.each([
    ["a media type with codecs", { type: 'video/mp4; codecs="avc1"', url: "/own?id=1" }, "video"],
    ["a media type of audio", { type: "audio/mpeg", url: "/own?id=1" }, "audio"],
    ["a word for its format", { format: "mp4", url: "/own?id=1" }, "video"],
    ["a word for its format of audio", { format: "mp3", url: "/own?id=1" }, "audio"],
  ])("needs no extension beside %s", async (_, stated, mediaType) => {
    const info = await resolveFrom({ [url]: { body: head + state({ media: stated }) } }, url);
    expect(urlsOf(info)).toEqual([`${site}/own?id=1`]);
    expect(info.media_type).toBe(mediaType);
  });

  it.each(["mp3", "mpga", "opus"])("tells audio by the extension .%s", async (extension) => {
    const page = head + state({ file: `/own.${extension}` });
    const info = await resolveFrom({ [url]: { body: page } }, url);
    expect(info).toMatchObject({ media_type: "audio", formats: [{ ext: extension }] });
  });

  it("is a manifest's as the argument of loadSource", async () => {
    const info = await resolveFrom({ [url]: { body: head + script(`hls.loadSource('/own?id=1')`) } }, url);
    expect(info.formats).toMatchObject([{ url: `${site}/own?id=1`, protocol: "m3u8" }]);
  });

  it("may have another one after it", async () => {
    const page = script(`new Playerjs({file: "${site}/own.mp4 or https://cdn.example.com/own.mp4"})`);
    expect(await read(page)).toEqual(["https://cdn.example.com/own.mp4", `${site}/own.mp4`]);
  });

  it("may have spaces", async () => {
    expect(await read(script(`setup({file: "/Filme/Unsere Otter.mp4"})`))).toEqual([
      `${site}/Filme/Unsere%20Otter.mp4`,
    ]);
  });

  it("is not where a player counts its views or asks for a licence", async () => {
    const page = state({ type: "hls", url: "/own.m3u8", statUrl: "/views", licenseUrl: "/key" });
    expect(await read(page)).toEqual([`${site}/own.m3u8`]);
  });

  it("has an extension if there is a manifest too", async () => {
    const page = state({
      video: { hlsUrl: "/own.m3u8", formats: [{ url: "/part?id=1", mimeType: "video/mp4" }] },
    });
    expect(await read(page)).toEqual([`${site}/own.m3u8`]);
  });
});
