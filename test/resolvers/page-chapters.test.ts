import { describe, expect, it } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { createPageResolver } from "./page/local-reader.ts";
import { createSavedClient, fixedNow, jsonLd, pageUrl, resolvePage, type SavedResponse } from "./page/saved-client.ts";

const url = "https://video.example.com/chapters.vtt";
const vtt = `WEBVTT

NOTE of the film

1
00:00.000 --> 00:30.000
<b>Start</b> &amp; more

2
00:30.000 --> 02:00.500 align:start
The
end
`;
const page = (track = `<track kind="Chapters" src="/chapters.vtt">`, more = "") =>
  `<title>Otters</title>${more}<video src="/film.mp4" controls>${track}</video>`;
const film = { name: "Otters", "@type": "VideoObject", contentUrl: "/film.mp4" };

describe("a file of chapters that a page's player names", () => {
  it("gives the chapters of the page", async () => {
    const info = await resolvePage(page(), { [url]: { type: "text/vtt", body: vtt } });
    expect(info.chapters).toEqual([
      { start_time: 0, end_time: 30, title: "Start & more" },
      { start_time: 30, end_time: 120.5, title: "The end" },
    ]);
    expect(info.sources["chapters"]).toBe("html");
    expect(info.subtitles).toEqual({});
  });

  it("is cut at the end of the video", async () => {
    const stated = jsonLd({ ...film, duration: "PT60S" });
    const info = await resolvePage(page(undefined, stated), { [url]: { body: vtt } });
    expect(info.chapters?.map(({ end_time }) => end_time)).toEqual([30, 60]);
  });

  it("is not fetched if the page states its chapters, or the track is of another kind", async () => {
    const parts = ["A", "B"].map((name, i) => ({ "@type": "Clip", name, startOffset: i * 10, endOffset: i * 10 + 10 }));
    const stated = jsonLd({ ...film, hasPart: parts });
    for (const html of [page(undefined, stated), page(`<track kind="metadata" src="/chapters.vtt">`)]) {
      const client = createSavedClient({ [pageUrl]: { body: html }, [url]: { body: vtt } });
      const resolver = createPageResolver({ client, pageMaxBytes: 1_000_000, now: fixedNow });
      const info = await resolver.resolve(new URL(pageUrl), { signal: new AbortController().signal });
      expect(client.requested).not.toContain(url);
      expect(info.chapters?.map(({ title }) => title) ?? []).toEqual(html.includes("hasPart") ? ["A", "B"] : []);
    }
  });

  it.each<[string, SavedResponse | Error]>([
    ["cannot be fetched", new ServiceError("upstream_status", "no")],
    ["is in a network that is blocked", new ServiceError("address_blocked", "no")],
    ["is no WebVTT", { body: "<html>" }],
    ["has a million cues", { body: `WEBVTT\n\n${"00:01.000 --> 00:02.000\nx\n\n".repeat(1_000_000)}` }],
    ["has no cue with an end", { body: "WEBVTT\n\n00:02.000 --> 00:01.000\nx\n" }],
  ])("is left out if it %s", async (_, response) => {
    const info = await resolvePage(page(), { [url]: response });
    expect(info).toMatchObject({ title: "Otters", formats: [{ ext: "mp4" }] });
    expect(info).not.toHaveProperty("chapters");
    expect(info.sources).not.toHaveProperty("chapters");
  });
});

describe("a file of chapters that a playlist names", () => {
  const file = "https://video.example.com/1.json";
  const resolve = async (json: unknown, html = page("")) => {
    const body = typeof json === "string" ? json : JSON.stringify(json);
    const client = createSavedClient({
      [pageUrl]: { body: html },
      [file]: { type: "application/json+chapters", body },
    });
    const resolver = createPageResolver({ client, pageMaxBytes: 1_000_000, now: fixedNow });
    const context = { signal: new AbortController().signal, chaptersUrl: new URL(file) };
    const { chapters, sources } = await resolver.resolve(new URL(pageUrl), context);
    return { chapters, source: sources["chapters"], isFetched: client.requested.includes(file) };
  };

  it("gives the chapters of its entry, without those that are in no table of contents", async () => {
    const chapters = [
      { startTime: 0, title: "Intro", img: "/a.jpg" },
      { startTime: 10.5, title: "A picture", toc: false },
      { startTime: 30, endTime: 40.25, title: "Two\n&amp; more" },
    ];
    expect(await resolve({ version: "1.2.0", chapters })).toMatchObject({
      chapters: [
        { start_time: 0, end_time: 30, title: "Intro" },
        { start_time: 30, end_time: 40.25, title: "Two &amp; more" },
      ],
      source: "playlist",
    });
  });

  it("may be WebVTT", async () => {
    expect((await resolve(vtt)).chapters?.length).toBe(2);
  });

  it("is not fetched if the page states its chapters", async () => {
    const parts = ["A", "B"].map((name, i) => ({ "@type": "Clip", name, startOffset: i * 10, endOffset: i * 10 + 10 }));
    const own = page("", jsonLd({ ...film, hasPart: parts }));
    expect(await resolve({ chapters: [] }, own)).toMatchObject({ source: "json-ld", isFetched: false });
  });

  it.each<[string, unknown]>([
    ["has no list", { chapters: { startTime: 1 } }],
    ["has no times", { chapters: [null, 1, "a", [], { startTime: "soon", title: "A" }, { title: "B" }] }],
    ["is cut off", `{"chapters": [{"startTime": 1, "title": "A"`],
    ["is nested", `{"chapters":${"[".repeat(100_000)}`],
  ])("is left out if it %s", async (_, json) => {
    expect(await resolve(json)).toMatchObject({ chapters: undefined, isFetched: true });
  });
});
