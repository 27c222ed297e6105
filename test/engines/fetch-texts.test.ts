import { readdirSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import type { WantedSubtitles } from "../../src/engines/engine.ts";
import { fetchTexts } from "../../src/engines/native/texts/fetch-texts.ts";
import { placeCues, positionFrom } from "../../src/engines/native/texts/place-cues.ts";
import { TextStore } from "../../src/engines/native/texts/text-store.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";
import { mpd } from "../media/dash.ts";
import { dash, hls, resource } from "../media/resources.ts";
import { startSite } from "../media/site.ts";
import { makeFolder } from "../folder.ts";

const text = (words: string) => resource("text/plain", Buffer.from(`WEBVTT\n\n00:01.000 --> 00:02.000\n${words}\n`));
const mpdWith = (...languages: string[]) => {
  const files = ["captions", "written"];
  const periods = languages.map((language, i) => {
    const addressing = `<SegmentList duration="4"><SegmentURL media="${files[i]}.vtt"/></SegmentList>`;
    return [{ id: "a", mimeType: "text/vtt", codecs: "wvtt", language, addressing }];
  });
  return dash(mpd(periods, 4));
};
const site = await startSite(
  new Map([
    ["written.vtt", text("written")],
    ["captions.vtt", text("captions")],
    ["automatic.vtt", text("automatic")],
    ["same.mpd", mpdWith("en", "en")],
    ["other.mpd", mpdWith("en", "fr")],
    ["long.vtt", text("x".repeat(900 << 10))],
    ["broken.vtt", resource("text/plain", Buffer.from("nonsense"))],
  ]),
);
const client = createHttpClient({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => Promise.all([client.close(), site.close()]));

const track = (name: string, fields: Partial<WantedSubtitles> = {}): WantedSubtitles => {
  const listings = [{ url: site.url(`${name}.vtt`), ext: "vtt", name: null }];
  return { language: "en", name: "", role: "subtitles", automatic: false, listings, ...fields };
};
const automatic = track("automatic", { automatic: true });
const otherwise = [automatic];

async function fetched(...subtitles: WantedSubtitles[]) {
  const { signal } = new AbortController();
  const { texts, warnings } = await fetchTexts(
    { subtitles, pageUrl: site.url("page") },
    { client, store: new TextStore(makeFolder()), signal },
  );
  const words = texts.flatMap(({ stored }) => stored.parts().flatMap(({ cues }) => cues.map((cue) => cue.text)));
  return { words, warnings: warnings.map(({ message }) => message) };
}

it("subtitles that a Period of an MPD has in another language only are kept with a warning", async () => {
  const wanted = (name: string) => {
    const [url] = [site.url(name)];
    return track("", { listings: [{ url, manifest_url: url, format_id: "text-a", ext: "vtt", name: null }] });
  };
  expect(await fetched(wanted("same.mpd"))).toEqual({ words: ["captions", "written"], warnings: [] });
  expect(await fetched(wanted("other.mpd"))).toEqual({
    words: ["captions", "written"],
    warnings: ['the subtitles in en are others in places: Period 2 has this track only as "fr"'],
  });
});

it("a Period of an MPD has what it presents of a file that has the subtitles of others too", async () => {
  const lines = ["00:01.000 --> 00:02.000\nfirst", "00:03.000 --> 00:05.000\nboth", "00:06.000 --> 00:07.000\nsecond"];
  const periods = [0, 4].map((offset) => {
    const addressing = `<SegmentList duration="4" presentationTimeOffset="${offset}"><SegmentURL media="all.vtt"/></SegmentList>`;
    return [{ id: "a", mimeType: "text/vtt", codecs: "wvtt", language: "en", addressing }];
  });
  await using own = await startSite(
    new Map([
      ["two.mpd", dash(mpd(periods, 4))],
      ["all.vtt", resource("text/vtt", Buffer.from(`WEBVTT\n\n${lines.join("\n\n")}\n`))],
    ]),
  );
  const url = own.url("two.mpd");
  const wanted = track("", { listings: [{ url, manifest_url: url, format_id: "text-a", ext: "vtt", name: null }] });
  const { signal } = new AbortController();
  const store = new TextStore(makeFolder());
  const { texts } = await fetchTexts({ subtitles: [wanted], pageUrl: url }, { client, store, signal });
  const placed = placeCues(texts[0]!.stored.parts(), positionFrom(0));
  expect(placed.map(({ startS, endS, text: words }) => [words, startS, endS])).toEqual([
    ["first", 1, 2],
    ["both", 3, 5],
    ["second", 6, 7],
  ]);
  const [before, after] = texts[0]!.stored.parts().map(({ cues }) => cues.map(({ startS, endS }) => [startS, endS]));
  expect([before, after]).toEqual([
    [
      [1, 2],
      [3, 4],
    ],
    [
      [4, 5],
      [6, 7],
    ],
  ]);
});

it("segments of WebVTT may have their header, with a timestamp, in an init section, and are there though a server sends a message for a moment", async () => {
  const map = "X-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000";
  const segment = (header: string, words: string) =>
    resource("text/vtt", Buffer.from(`${header}00:01.000 --> 00:02.000\n${words}\n`));
  const lines = ["bare", "full", "note"].flatMap((name) => ["#EXTINF:4,", `${name}.vtt`]);
  await using own = await startSite(
    new Map([
      ["list.m3u8", hls(["#EXTM3U", '#EXT-X-MAP:URI="header.vtt"', ...lines, "#EXT-X-ENDLIST", ""].join("\n"))],
      ["header.vtt", resource("text/vtt", Buffer.from(`WEBVTT\n${map}`))],
      ["bare.vtt", segment("", "bare")],
      ["full.vtt", segment("WEBVTT\n\n", "full")],
      ["note.vtt", resource("text/vtt", Buffer.from("NOTE nobody speaks\n"))],
    ]),
  );
  let messages = 1;
  own.answer("bare.vtt", (response, serve) => {
    if ((messages -= 1) < 0) return serve();
    return response.end("<!-- 12 --> Try again later");
  });
  const { signal } = new AbortController();
  const listings = [{ url: own.url("list.m3u8"), ext: "m3u8", name: null }];
  const store = new TextStore(makeFolder());
  const options = { subtitles: [track("", { listings })], pageUrl: own.url("page") };
  const { texts, warnings } = await fetchTexts(options, { client, store, signal });
  expect(warnings).toEqual([]);
  const parts = texts.flatMap(({ stored }) => stored.parts());
  expect(parts.map(({ cues, map: found }) => [cues[0]?.text, found !== null])).toEqual([
    ["bare", true],
    ["full", false],
    [undefined, true],
  ]);
});

describe("subtitles that people wrote", () => {
  const reason = "the subtitles cannot be read: they are neither WebVTT nor TTML, SubRip, SubStation Alpha or LRC";

  it("are taken, and no automatic captions, if they can be read", async () => {
    expect(await fetched(track("written", { otherwise }))).toEqual({ words: ["written"], warnings: [] });
    expect(site.asked.map(({ path }) => path)).not.toContain("automatic.vtt");
  });

  it("are replaced by automatic captions if they cannot be read, with a warning that says so", async () => {
    const missing = `the subtitles in en are missing: ${reason}`;
    expect(await fetched(track("broken", { otherwise }))).toEqual({
      words: ["automatic"],
      warnings: [`${missing}; automatic captions are there instead`],
    });
    const unread = [track("broken", { automatic: true })];
    expect(await fetched(track("broken", { otherwise: unread }))).toEqual({ words: [], warnings: [missing] });
    expect(await fetched(track("broken"))).toEqual({ words: [], warnings: [missing] });
  });

  it("are not replaced if others of their language can be read, but for forced ones", async () => {
    const broken = track("broken", { otherwise });
    const captions = track("captions", { role: "captions", otherwise });
    expect((await fetched(broken, captions)).words).toEqual(["captions"]);
    expect((await fetched(broken, { ...captions, language: "de" })).words).toEqual(["captions", "automatic"]);
    expect((await fetched(broken, track("captions", { role: "forced" }))).words).toEqual(["captions", "automatic"]);
  });

  it("are replaced once, though several of a language cannot be read, or the captions were wanted anyway", async () => {
    const broken = track("broken", { otherwise });
    expect((await fetched(broken, { ...broken, role: "captions" })).words).toEqual(["automatic"]);
    expect((await fetched(broken, automatic)).words).toEqual(["automatic"]);
  });
});

describe("subtitles in segments", () => {
  const playlist = (numbers: readonly number[]) => {
    const lines = numbers.flatMap((number) => ["#EXTINF:2,", `part-${number}.vtt`]);
    return hls(["#EXTM3U", "#EXT-X-TARGETDURATION:2", ...lines, "#EXT-X-ENDLIST", ""].join("\n"));
  };
  const listOf = (name: string, ...numbers: number[]) => {
    site.resources.set(`${name}.m3u8`, playlist(numbers));
    return { url: site.url(`${name}.m3u8`), ext: "m3u8", name: null };
  };
  for (const number of [1, 2, 3]) site.resources.set(`part-${number}.vtt`, text(`part ${number}`));

  it("are there but for one that the server does not have, of which a warning tells", async () => {
    const wanted = track("", { listings: [listOf("gone", 1, 4, 3)] });
    const { words, warnings } = await fetched(wanted);
    expect(words).toEqual(["part 1", "part 3"]);
    const rule = /^the subtitles in en lack 1 of 3 segments: GET http:\S+part-4.vtt failed with status 404$/;
    expect(warnings).toEqual([expect.stringMatching(rule)]);
  });

  it("are those of another place if it has all of them", async () => {
    const wanted = track("", { listings: [listOf("gone", 1, 4, 3), listOf("whole", 1, 2, 3)] });
    expect(await fetched(wanted)).toEqual({ words: ["part 1", "part 2", "part 3"], warnings: [] });
  });

  it.each([
    ["a page", 200, "<!DOCTYPE html><title>Bad gateway</title>"],
    ["nothing", 200, ""],
    ["no content", 204, undefined],
  ])("are there though a server sends %s for a moment", async (_, status, body) => {
    let faults = 1;
    site.answer("part-2.vtt", (response, serve) => {
      if ((faults -= 1) < 0) return serve();
      return response.writeHead(status).end(body);
    });
    const wanted = track("", { listings: [listOf("whole", 1, 2, 3)] });
    expect(await fetched(wanted)).toEqual({ words: ["part 1", "part 2", "part 3"], warnings: [] });
    expect(faults).toBe(-1);
  });

  it("may have empty ones", async () => {
    site.resources.set("part-5.vtt", resource("text/vtt", ""));
    const wanted = track("", { listings: [listOf("empty", 1, 5, 3)] });
    expect(await fetched(wanted)).toEqual({ words: ["part 1", "part 3"], warnings: [] });
  });

  it("are missing if more than five in a row are", async () => {
    const wanted = track("", { listings: [listOf("lost", 1, 10, 11, 12, 13, 14, 15, 3)] });
    const { words, warnings } = await fetched(wanted);
    expect(words).toEqual([]);
    expect(warnings).toEqual([
      expect.stringMatching(/^the subtitles in en are missing: GET \S+15.vtt failed with status 404$/),
    ]);
  });
});

it.each([
  ["a page", "<!DOCTYPE html><title>Bad gateway</title>"],
  ["a message in JSON", '{"error":"busy"}'],
  ["nothing", ""],
])("a file is fetched again if a server sends %s in its place", async (_, body) => {
  let faults = 1;
  site.answer("captions.vtt", (response, serve) => {
    if ((faults -= 1) < 0) return serve();
    return response.end(body);
  });
  expect(await fetched(track("captions"))).toEqual({ words: ["captions"], warnings: [] });
  expect(faults).toBe(-1);
});

it("the bytes of a connection that breaks do not count, as they are fetched again", async () => {
  let isFirst = true;
  site.answer("long.vtt", (response, serve) => {
    if (!isFirst) return serve();
    isFirst = false;
    response.writeHead(200, { "content-length": 901 << 10 });
    return response.write("x".repeat(800 << 10), () => response.destroy());
  });
  const folder = makeFolder();
  const { signal } = new AbortController();
  const job = { subtitles: [track("long")], pageUrl: site.url("page") };
  const { texts, warnings } = await fetchTexts(job, { client, store: new TextStore(folder), signal });
  expect([texts.length, warnings]).toEqual([1, []]);
  expect(site.asked.filter(({ path }) => path === "long.vtt")).toHaveLength(2);
  // With what was lost it would be a long one, which is on the disk.
  expect(readdirSync(folder)).toEqual([]);
});
