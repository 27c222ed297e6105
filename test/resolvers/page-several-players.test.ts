import { describe, expect, it } from "vitest";
import type { PageInfo } from "../../src/model/page-info.ts";
import { jsonLd, pageUrl, resolveFrom, resolvePage } from "./page/saved-client.ts";

const at = (path: string) => new URL(path, pageUrl).href;
const script = (source: string) => `<title>Lectures</title><script>${source}</script>`;
const urlsOf = ({ entries = [] }: PageInfo) => entries.map(({ url }) => new URL(url).pathname);
const filesOf = ({ formats }: PageInfo) => formats.map(({ url }) => new URL(url).pathname);

const jwPlayer = (...items: object[]) => script(`jwplayer("p").setup({playlist: ${JSON.stringify(items)}})`);
const one = { title: "Lecture 1", file: "/1.mp4", image: "/1.jpg", duration: 61 };
const two = { title: "Lecture 2", sources: [{ file: "/2-360p.mp4" }, { file: "/2.m3u8" }] };

describe("a playlist of a player", () => {
  it("is the entries of its page, with titles, durations, pictures, and the manifest of each", async () => {
    const info = await resolvePage(jwPlayer(one, two));
    expect(info).toMatchObject({ title: "Lectures", media_type: "none", formats: [], entries_count: 2 });
    expect(info.sources["entries"]).toBe("player");
    expect(info.entries).toEqual([
      { url: at("/1.mp4"), title: "Lecture 1", duration: 61, thumbnail: at("/1.jpg"), uploaded_at: null },
      { url: at("/2.m3u8"), title: "Lecture 2", duration: null, thumbnail: null, uploaded_at: null },
    ]);
  });

  const source = (n: number) => ({ name: `Lecture ${n}`, sources: [{ src: `/${n}.mp4`, type: "video/mp4" }] });

  it.each([
    ["Video.js' playlists", script(`player.playlist(${JSON.stringify([1, 2].map(source))})`)],
    ["a variable", script(`const playlist = [{title: "A", src: "/1.mp4"}, {title: "B", src: "/2.mp3"}];`)],
    ["a trailer before several", jwPlayer({ title: "Trailer", file: "/t.mp4" }, one, { title: "B", file: "/2.mp3" })],
    [
      "JW Players with titles",
      script(`jwplayer("a").setup({title: "A", file: "/1.mp4"}); jwplayer("b").setup({title: "B", file: "/2.mp4"})`),
    ],
    [
      "sources of Plyr",
      script(
        `a.source = {title: "A", sources: [{src: "/1.mp4"}]}; b.source = {title: "B", sources: [{src: "/2.mp4"}]}`,
      ),
    ],
  ])("is read from %s", async (_, page) => {
    expect(urlsOf(await resolvePage(page)).filter((path) => path !== "/t.mp4")).toEqual([
      "/1.mp4",
      expect.stringMatching(/^\/2\.mp[34]$/),
    ]);
  });

  it.each([
    ["one has the page's title", `<title>Lecture 1 | Rivers</title>${jwPlayer(one, two)}`],
    ["the page calls itself a video", `<meta property="og:type" content="video.other">${jwPlayer(one, two)}`],
    ["the page states its duration", `<meta property="video:duration" content="61">${jwPlayer(one, two)}`],
    ["it has one item", jwPlayer(one)],
    ["its items are qualities of one", jwPlayer({ file: "/1.mp4" }, { file: "/1-720p.mp4" })],
    [
      "its items are languages of one",
      jwPlayer({ title: "A (English)", file: "/1.mp4" }, { title: "A (de)", file: "/b.mp4" }),
    ],
    [
      "another player has another medium",
      script(`setup({file: "/1.mp4"}); playlist = [{title: "A", file: "/2.mp4"}, {title: "B", file: "/3.mp4"}]`),
    ],
    ["the files of a medium are set up one by one", script(`setup({file: "/1.mp4"}); setup({file: "/2.mp4"})`)],
    ["a frame beside it may be a player", `<iframe src="/player/1" allowfullscreen></iframe>${jwPlayer(one, two)}`],
  ])("is not the page if %s", async (_, page) => {
    const info = await resolvePage(page);
    expect(info).not.toHaveProperty("entries");
    expect(filesOf(info)).toContain("/1.mp4");
  });

  it("gives a page its first item if it is in a frame", async () => {
    const player = "https://player.example.com/1";
    const info = await resolvePage(`<iframe src="${player}" allowfullscreen></iframe>`, {
      [player]: { body: jwPlayer(one, two) },
    });
    expect(filesOf(info)).toEqual(["/1.mp4"]);
  });
});

describe("several players of a page", () => {
  const video = (n: number, more = "") => `<video controls src="/${n}.mp4" ${more}></video>`;

  it("are its entries, with titles and pictures", async () => {
    const info = await resolvePage(
      `<title>Otters</title>${video(1, `title="Otter 1" poster="/1.jpg"`)}<p>And:</p>${video(2)}<audio controls><source src="/3.mp3"></audio>`,
    );
    expect(info).toMatchObject({ title: "Otters", media_type: "none", formats: [], entries_count: 3 });
    expect(info.sources["entries"]).toBe("html");
    expect(info.entries?.[0]).toMatchObject({ title: "Otter 1", thumbnail: at("/1.jpg") });
    expect(urlsOf(info)).toEqual(["/1.mp4", "/2.mp4", "/3.mp3"]);
  });

  it("are its entries after what is beside its content", async () => {
    const page = `<aside><nav>${video(0)}</nav></aside></aside>${video(1)}${video(2)}`;
    expect(urlsOf(await resolvePage(page))).toEqual(["/1.mp4", "/2.mp4"]);
  });

  it.each([
    ["the page states a video", `<meta property="og:video" content="/1.mp4">${video(2)}${video(3)}`],
    [
      "schema.org describes one",
      `${jsonLd({ "@type": "VideoObject", name: "Otters", duration: "PT9S" })}${video(1)}${video(2)}`,
    ],
    ["the others have no controls", `${video(1)}<video src="/2.mp4"></video><video muted src="/3.mp4"></video>`],
    ["the other is an advertisement", `${video(1)}<video class="ad-sponsor" controls src="/2.mp4"></video>`],
    ["the other is a trailer", `${video(1)}<video class="trailer" controls src="/2.mp4"></video>`],
    ["the other is hidden", `${video(1)}<video hidden controls src="/2.mp4"></video>`],
    ["the first is beside the page's content", `<aside>${video(2)}</aside>${video(1)}`],
    ["the first is hidden", `<video controls style="display: none" src="/2.mp4"></video>${video(1)}`],
    ["the other is a preview", `${video(1)}<video class="preview" controls src="/2.mp4"></video>`],
    ["the others are related ones", `${video(1)}${[2, 3].map((n) => video(n, `class="related"`)).join("")}`],
    ["the other has the medium's sign language", `${video(1)}<video controls src="/1-sign-language.mp4"></video>`],
    ["the others are audio", `${video(1)}<audio controls src="/2.mp3"></audio><audio controls src="/3.mp3"></audio>`],
    ["one starts by itself", `${video(1, "autoplay")}${video(2)}${video(3)}`],
    ["one is larger", `${video(1, `width="960"`)}${video(2, `width="320"`)}${video(3, `width="320"`)}`],
    ["one has the page's title", `<title>Otters – Rivers</title>${video(1, `title="Otters"`)}${video(2)}`],
    [
      "one has the page's picture",
      `<meta property="og:image" content="/1.jpg">${video(1, `poster="/1.jpg"`)}${video(2)}`,
    ],
    ["they have one title", [1, 2].map((n) => video(n, `title="Otters"`)).join("")],
    ["they have one picture", [1, 2].map((n) => video(n, `poster="/a.jpg"`)).join("")],
    ["they differ in language", `${video(1)}<video controls src="/de/1.mp4"></video>`],
    ["they differ in codec", `${video(1)}<video controls src="/1-av1.mp4"></video>`],
    ["they differ in format", `${video(1)}<video controls src="/1/index.m3u8"></video>`],
    ["they differ in server", `${video(1)}<video controls src="https://cdn.example.com/1.mp4"></video>`],
    ["they differ in what keeps caches apart", `${video(1)}<video controls src="/1.mp4?_=2"></video>`],
    [
      "the page links to a manifest",
      `<link rel="alternate" type="application/x-mpegurl" href="/1.m3u8">${video(1)}${video(2)}`,
    ],
    ["the other is beside the page's content", `<main>${video(1)}</main><aside><h2>Related</h2>${video(2)}</aside>`],
    ["both play the same", video(1) + video(1)],
    ["both differ in bit rate", `${video(1)}<video controls src="/1_512kb.mp4"></video>`],
    ["both differ in quality", `${video(1)}<video controls src="/1-mobile.mp4"></video>`],
    ["a frame beside them may be a player", `${video(1)}${video(2)}<iframe src="/player/1" allowfullscreen></iframe>`],
  ])("are one medium if %s", async (_, page) => {
    const info = await resolvePage(page);
    expect(info).not.toHaveProperty("entries");
    expect(filesOf(info)).toContain("/1.mp4");
  });

  it("are one medium if the page has the id of one in its URL", async () => {
    const url = "https://example.com/watch/12345";
    const info = await resolveFrom({ [url]: { body: video(12345) + video(67890) } }, url);
    expect(filesOf(info)).toEqual(["/12345.mp4"]);
  });

  it.each([
    ["whose pictures are one, as placeholders are", [1, 2].map((n) => video(n, `title="Otter ${n}" poster="/a.jpg"`))],
    ["whose players have other names", [1, 2].map((n) => video(n, `class="slider"`))],
    ["of audio with the numbers of heights", [240, 360].map((n) => `<audio controls src="/${n}.mp3"></audio>`)],
    ["which are low, as audio is", [1, 2].map((n) => `<audio controls height="40" src="/${n}.mp3"></audio>`)],
    ["whose files have no extension, below a version", [1, 2].map((n) => `<video controls src="/v1.2/${n}"></video>`)],
    ["of which a script tells them apart", [1, 2].map((n) => `<video controls src="/file?id=${n}"></video>`)],
  ])("are entries %s", async (_, players) => {
    expect((await resolvePage(players.join(""))).entries).toHaveLength(2);
  });

  it("are none on a site's front page", async () => {
    const front = "https://example.com/";
    const info = await resolveFrom({ [front]: { body: video(1) + video(2) } }, front);
    expect(info).not.toHaveProperty("entries");
  });
});
