import { describe, expect, it } from "vitest";
import type { PageInfo } from "../../src/model/page-info.ts";
import { jsonLd, resolvePage } from "./page/saved-client.ts";

const head = "<title>Big River | Films</title>";
const cdn = "https://cdn.example.com";
const tube = "https://tube.example.com/embed/1";
const video = (name: string, file: string, more: object = {}) => ({
  "@type": "VideoObject",
  name,
  duration: "PT90S",
  contentUrl: `${cdn}/${file}`,
  ...more,
});
const film = `<video controls src="${cdn}/film.mp4"></video>`;
const setup = `<script>jwplayer("p").setup({file: "${cdn}/film.mp4"})</script>`;
const filesOf = ({ formats }: PageInfo) => formats.map(({ url }) => url.replace(`${cdn}/`, ""));

describe("the trailer of a film (schema.org)", () => {
  const movie = (trailer: object) => head + jsonLd({ "@type": "Movie", name: "Big River", trailer });
  const card = (url: string) => `<meta property="og:video" content="${url}">`;

  it.each([
    ["a player's element, whatever the trailer's name", movie(video("Big River", "1.mp4")) + film],
    [
      "a player's element after one of the trailer",
      `${movie(video("Big River", "1.mp4"))}<video controls src="${cdn}/1.mp4"></video>${film}`,
    ],
    ["what a player is set up with", movie(video("Big River", "1.mp4")) + setup],
    [
      "another video of the film",
      head + jsonLd({ "@type": "Movie", video: video("Big River", "film.mp4"), trailer: video("Big River", "1.mp4") }),
    ],
    ["a player's element beside a card of the trailer", card(`${cdn}/1.mp4`) + movie(video("Clip", "1.mp4")) + film],
    [
      "a player's element beside a card of the trailer's player",
      card(tube) + movie({ "@type": "VideoObject", name: "Clip", embedUrl: tube }) + film,
    ],
    [
      "a player's element, where the film only refers to it",
      head +
        jsonLd({
          "@graph": [video("Big River", "1.mp4", { "@id": "#t" }), { "@type": "Movie", trailer: { "@id": "#t" } }],
        }) +
        film,
    ],
  ])("gives nothing to the film: %s", async (_, page) => {
    const info = await resolvePage(page);
    expect(filesOf(info)).toEqual(["film.mp4"]);
    expect(info.embed).toBeNull();
    expect(info.title).toMatch(/^Big River/);
  });

  it("states nothing of a film beside it", async () => {
    const info = await resolvePage(movie(video("Big River", "1.mp4", { uploadDate: "2024-01-02" })) + film);
    expect(info).toMatchObject({ duration: null, uploaded_at: null });
  });

  it("is the medium of a page that calls itself one", async () => {
    const page = `<title>Big River – Official Trailer</title>${jsonLd({ "@type": "Movie", trailer: video("Big River – Official Trailer", "1.mp4") })}`;
    expect(filesOf(await resolvePage(page))).toEqual(["1.mp4"]);
  });

  it("is the medium of a page that has nothing else of that name", async () => {
    const page = movie(video("Big River", "1.mp4"));
    expect(await resolvePage(page)).toMatchObject({ duration: 90, formats: [{ url: `${cdn}/1.mp4` }] });
  });

  it("is not the medium of a page that may have a player in a frame", async () => {
    const frame = `<iframe src="https://tube.example.com/player/2" allowfullscreen></iframe>`;
    expect(await resolvePage(movie(video("Big River", "1.mp4")) + frame)).toMatchObject({
      duration: null,
      formats: [],
    });
  });

  it("is the medium of a page whose only frame is its player", async () => {
    const page = movie({ "@type": "VideoObject", name: "Big River", embedUrl: tube, duration: "PT90S" });
    const info = await resolvePage(`${page}<iframe src="${tube}?autoplay=0" allowfullscreen></iframe>`);
    expect(info).toMatchObject({ duration: 90, embed: { url: tube } });
  });

  it("is the medium of a page whose only other video is a silent loop", async () => {
    const loop = `<meta property="og:type" content="video.movie"><video autoplay muted loop src="${cdn}/loop.mp4"></video>`;
    expect(filesOf(await resolvePage(movie(video("Big River", "1.mp4")) + loop))[0]).toBe("1.mp4");
  });

  it("is what its page's card says if there is nothing else", async () => {
    expect(filesOf(await resolvePage(card(`${cdn}/1.mp4`) + movie(video("Clip", "1.mp4"))))).toEqual(["1.mp4"]);
  });
});

describe("a trailer before the film", () => {
  const page = (...videos: object[]) => `<title>Watch</title>${jsonLd(...videos, video("Big River", "film.mp4"))}`;
  const before = (attributes: string, file = "1.mp4") => `${head}<video controls ${attributes} src="${cdn}/${file}">
    </video>${film}`;
  const script = (source: string) => `<title>Watch</title><script>${source}</script>`;

  it.each([
    ["its name", page(video("Official Trailer", "1.mp4"))],
    ["its name in French", page(video("Bande-annonce officielle", "1.mp4"))],
    ["its name in Japanese", page(video("大河 予告編", "1.mp4"))],
    [
      "its name beside the film's",
      head + jsonLd(video("Big River (trailer)", "1.mp4"), video("Big River HD", "film.mp4")),
    ],
    ["its @type", page(video("One", "1.mp4", { "@type": ["VideoObject", "Trailer"] }))],
    ["its additionalType", page(video("One", "1.mp4", { additionalType: "https://example.com/Trailer" }))],
    ["its genre", page(video("One", "1.mp4", { genre: "Trailer" }))],
    ["the class of its element", before(`class="trailer"`)],
    ["the id of its element", before(`id="trailerPlayer"`)],
    ["the label of its element", before(`aria-label="Watch the trailer"`)],
    ["its file", before("", "big_river_trailer.mp4")],
    [
      "its title in a script",
      script(`a({title: "Teaser", file: "${cdn}/1.mp4"}); b({title: "Big River", file: "${cdn}/film.mp4"})`),
    ],
    [
      "its title in a playlist",
      script(
        `setup({playlist: [{title: "Official Trailer", file: "${cdn}/1.mp4"}, {title: "Big River", file: "${cdn}/film.mp4"}]})`,
      ),
    ],
    ["its file in a script", script(`a({file: "${cdn}/trailer.mp4"}); b({file: "${cdn}/film.mp4"})`)],
  ])("is not taken for it: %s", async (_, html) => {
    expect(filesOf(await resolvePage(html))).toEqual(["film.mp4"]);
  });

  it.each([
    ["the page calls itself one", `<title>Trailer: Big River</title><video src="${cdn}/trailer.mp4"></video>${film}`],
    [
      "the page is about trailers for boats, as its path says",
      `<link rel="canonical" href="/boat-trailers/x1"><title>X1</title><video src="${cdn}/trailer.mp4"></video>${film}`,
    ],
    ["the page has nothing else", `${head}<video controls class="trailer" src="${cdn}/trailer.mp4"></video>`],
    ["all are trailers", `${head}<video src="${cdn}/trailer.mp4"></video><video src="${cdn}/trailer-2.mp4"></video>`],
  ])("is taken: %s", async (_, html) => {
    expect(filesOf(await resolvePage(html))).toEqual(["trailer.mp4"]);
  });

  const player = "https://tube.example.com/player/2";
  const framed = `${head}<video controls src="${cdn}/trailer.mp4"></video><iframe src="${player}" allowfullscreen></iframe>`;

  it("is not taken for a film whose player is in a frame", async () => {
    expect(filesOf(await resolvePage(framed, { [player]: { body: film } }))).toEqual(["film.mp4"]);
  });

  it("gives no subtitles to a film whose player is in a frame", async () => {
    const html = framed.replace("></video>", `><track src="/1.vtt" srclang="en"></video>`);
    const info = await resolvePage(html, { [player]: { body: film } });
    expect(filesOf(info)).toEqual(["film.mp4"]);
    expect(info.subtitles).toEqual({});
    expect(info.sources).not.toHaveProperty("subtitles");
  });

  it("is taken if the frame beside it plays nothing", async () => {
    expect(filesOf(await resolvePage(framed, { [player]: { body: "<p>A map</p>" } }))).toEqual(["trailer.mp4"]);
  });

  it("may be the first track of an album", async () => {
    const track = (name: string, duration: string) => ({ "@type": "MusicRecording", name, duration });
    const album = jsonLd(track("Trailer", "PT95S"), track("Prologue", "PT69S"));
    expect((await resolvePage(`<title>Soundtrack</title>${album}`)).duration).toBe(95);
  });
});
