import { Value } from "@sinclair/typebox/value";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { boundInfo } from "../../src/model/bounded-info.ts";
import { PageInfo } from "../../src/model/page-info.ts";
import { seed } from "../random.ts";
import { pageUrl } from "./page/saved-client.ts";
import { fileDict, readRecorded, videoDict } from "./ytdlp/recorded.ts";

const fullDict = videoDict({
  description: "Two otters.\nAt play.",
  duration: 90.25,
  timestamp: 1_709_287_200,
  upload_date: "20240301",
  uploader: "Ada",
  uploader_url: "https://video.example.com/u/ada",
  thumbnails: [
    { url: "/small.jpg", width: 120, height: 90 },
    { url: "https://img.example.com/large.jpg", width: 1280, height: 720 },
  ],
  series: " Otters at play ",
  season_number: 0,
  episode_number: 12,
  view_count: 0,
  like_count: 12,
  live_status: "post_live",
  age_limit: 18,
  tags: ["otters", "play", "Otters"],
  formats: [fileDict({ language: "en_GB", language_preference: 10 })],
  subtitles: {
    en: [
      { url: "/en.srv1", ext: "srv1" },
      { url: "/en.vtt", ext: "vtt", name: "English" },
    ],
    live_chat: [{ url: "https://video.example.com/chat", ext: "json" }],
    de: [{ url: "/de.m3u8", ext: "vtt", protocol: "m3u8_native" }],
  },
  automatic_captions: { fr: [{ url: "/fr.vtt", ext: "vtt", name: "French" }] },
  chapters: [
    { start_time: 0, end_time: 30.5, title: "One" },
    { start_time: 30.5, end_time: 90.25, title: "Two" },
    { start_time: "x", title: 5 },
  ],
});

describe("the yt-dlp resolver", () => {
  it("tells what yt-dlp knows of a video, best first, and names yt-dlp as the source", async () => {
    const info = await readRecorded(fullDict);
    expect([...Value.Errors(PageInfo, info)]).toEqual([]);
    const { sources, formats, ...facts } = info;
    expect(facts).toEqual({
      url: pageUrl,
      webpage_url: pageUrl,
      site_name: null,
      media_type: "video",
      title: "Otters",
      description: "Two otters.\nAt play.",
      language: "en-GB",
      duration: 90.25,
      uploaded_at: "2024-03-01T10:00:00Z",
      uploader: "Ada",
      uploader_url: "https://video.example.com/u/ada",
      thumbnails: [
        { url: "https://img.example.com/large.jpg", width: 1280, height: 720 },
        { url: "https://video.example.com/small.jpg", width: 120, height: 90 },
      ],
      embed: null,
      view_count: 0,
      like_count: 12,
      live_status: "was_live",
      age_limit: 18,
      tags: ["otters", "play"],
      series: "Otters at play",
      season_number: 0,
      episode_number: 12,
      subtitles: {
        en: [
          { url: "https://video.example.com/en.vtt", ext: "vtt", name: "English" },
          { url: "https://video.example.com/en.srv1", ext: "srv1", name: null },
        ],
        de: [{ url: "https://video.example.com/de.m3u8", ext: "m3u8", name: null }],
      },
      automatic_captions: { fr: [{ url: "https://video.example.com/fr.vtt", ext: "vtt", name: "French" }] },
      chapters: [
        { start_time: 0, end_time: 30.5, title: "One" },
        { start_time: 30.5, end_time: 90.25, title: "Two" },
      ],
      resolver: "yt-dlp",
      video_id: "1",
      extractor: "Example",
      extractor_version: "2026.10.26",
      fetched_at: "2024-05-06T07:08:09.000Z",
    });
    expect(formats.map(({ format_id }) => format_id)).toEqual(["18"]);
    const known = Object.entries({ ...facts, formats })
      .filter(([, value]) => value !== null && Object.keys(Object(value)).length + 1 > 0)
      .map(([field]) => field)
      .filter((field) => sources[field] !== undefined);
    expect(new Set(Object.values(sources))).toEqual(new Set(["yt-dlp"]));
    expect(Object.keys(sources).toSorted()).toEqual(known.toSorted());
    expect(sources).not.toHaveProperty("embed");
    expect(sources).toHaveProperty("view_count");
  });

  it("leaves out what the generic extractors guess: the host as uploader, Last-Modified as date", async () => {
    const guesses = {
      extractor: "generic",
      uploader: "video.example.com",
      timestamp: 1_709_287_200,
    };
    const { uploader, uploaded_at, sources } = await readRecorded(videoDict(guesses));
    expect([uploader, uploaded_at]).toEqual([null, null]);
    expect(sources).not.toHaveProperty("uploader");
  });

  it("takes the channel for an unknown uploader, and the date for an unknown time", async () => {
    const dict = videoDict({ channel: "Ada's", channel_url: "/c/ada", upload_date: "20240301" });
    expect(await readRecorded(dict)).toMatchObject({
      uploader: "Ada's",
      uploader_url: "https://video.example.com/c/ada",
      uploaded_at: "2024-03-01",
    });
  });

  it("says audio if no format has video", async () => {
    const audio = [fileDict({ ext: "mp3" }), fileDict({ vcodec: "none", acodec: "opus" })];
    expect(await readRecorded(videoDict({ formats: audio }))).toMatchObject({
      media_type: "audio",
    });
  });

  it("lists the entries of a playlist that yt-dlp has read, and says how to get the next ones", async () => {
    const entries = Array.from({ length: 200 }, (_, n) => ({
      _type: "url",
      url: `/watch/${n}`,
      title: `Otter ${n}`,
      duration: n,
      ...(n === 1 && { thumbnail: "/1.jpg", timestamp: 1_709_287_200 }),
    }));
    const list = { _type: "playlist", title: "All otters", entries, _has_more: true, _count: 300 };
    const info = await readRecorded(list);
    expect([...Value.Errors(PageInfo, info)]).toEqual([]);
    expect(info).toMatchObject({ title: "All otters", media_type: "none", formats: [] });
    expect(info.entries).toHaveLength(200);
    expect(info.entries?.slice(0, 2)).toEqual([
      {
        url: "https://video.example.com/watch/0",
        title: "Otter 0",
        duration: null,
        thumbnail: null,
        uploaded_at: null,
      },
      {
        url: "https://video.example.com/watch/1",
        title: "Otter 1",
        duration: 1,
        thumbnail: "https://video.example.com/1.jpg",
        uploaded_at: "2024-03-01T10:00:00Z",
      },
    ]);
    expect(info.sources).toMatchObject({ entries: "yt-dlp" });
    expect(info.entries_count).toBe(300);
    const rest = { ...list, entries: entries.slice(0, 100), _has_more: false, _count: null };
    const last = await readRecorded(rest, { entriesCursor: info.entries_next });
    expect(last.entries).toHaveLength(100);
    expect(last.entries_count).toBe(300);
    expect(last).not.toHaveProperty("entries_next");
  });

  it("lists fewer entries if they are too long for one record, and goes on with the next one", async () => {
    const entries = Array.from({ length: 200 }, (_, n) => ({
      _type: "url",
      url: `/${n}`,
      thumbnail: `/${"t".repeat(8_000)}`,
    }));
    const recorded = (start: number) => ({ _type: "playlist", entries: entries.slice(start), _has_more: false });
    const listed: string[] = [];
    let entriesCursor: string | undefined;
    do {
      const info = await readRecorded(recorded, { entriesCursor });
      expect(boundInfo({ ...info, description: "d".repeat(300_000) }, 256_000).entries).toEqual(info.entries);
      listed.push(...(info.entries ?? []).map(({ url }) => new URL(url).pathname));
      entriesCursor = info.entries_next;
    } while (entriesCursor !== undefined);
    expect(listed).toEqual(entries.map(({ url }) => url));
  });

  it("takes the only entry of a further slice for an entry", async () => {
    const first = await readRecorded({ _type: "playlist", entries: [{ _type: "url", url: "/1" }], _has_more: true });
    const entry = videoDict({ webpage_url: "https://video.example.com/watch/2" });
    const last = await readRecorded({ _type: "playlist", entries: [entry] }, { entriesCursor: first.entries_next });
    expect(last).toMatchObject({ formats: [], entries_count: 2 });
    expect(last.entries?.map(({ title }) => title)).toEqual(["Otters 2024-05-06 07:08"]);
  });

  it.each(["", "x", "!", Buffer.from("yt-dlp 0").toString("base64url"), Buffer.from("page 200").toString("base64url")])(
    "refuses a cursor that it has not made: %j",
    async (entriesCursor) => {
      const error = readRecorded({ _type: "playlist", entries: [] }, { entriesCursor });
      await expect(error).rejects.toMatchObject({ code: "invalid_request", faults: [{ pointer: "/entries_cursor" }] });
    },
  );

  it("says that a playlist is empty", async () => {
    const info = await readRecorded({ _type: "playlist", entries: [], _has_more: false, _count: 0 });
    expect(info).toMatchObject({ entries: [], entries_count: 0 });
  });

  it("leads to the medium of an entry that has no page of its own", async () => {
    const on = (webpage_url: string, n: number) => ({ webpage_url, url: `/file/${n}.mp4` });
    const entries = [on(pageUrl, 1), on("https://video.example.com/watch/2", 2), { url: "ftp://x" }];
    const { entries: listed } = await readRecorded({
      _type: "multi_video",
      webpage_url: pageUrl,
      entries,
    });
    expect(listed?.map(({ url }) => url)).toEqual([
      "https://video.example.com/file/1.mp4",
      "https://video.example.com/watch/2",
    ]);
  });

  it("takes the only video of a playlist for the page's own", async () => {
    const info = await readRecorded({ _type: "playlist", title: "One", entries: [fullDict] });
    expect(info).toMatchObject({ title: "Otters", formats: [{ format_id: "18" }] });
    expect(info).not.toHaveProperty("entries");
    const link = { _type: "url", url: "/watch/2" };
    expect(await readRecorded({ _type: "playlist", entries: [link] })).toMatchObject({
      entries: [{ url: "https://video.example.com/watch/2" }],
      formats: [],
    });
  });

  it("returns a record without formats for a page on which yt-dlp finds nothing", async () => {
    const info = await readRecorded(new ServiceError("no_media", "none"));
    expect([...Value.Errors(PageInfo, info)]).toEqual([]);
    expect(info).toMatchObject({
      media_type: "none",
      formats: [],
      sources: {},
      resolver: "yt-dlp",
    });
  });

  it("rejects with upstream_invalid for what the generic extractor only guesses to be a file", async () => {
    const { formats: _, ...dict } = videoDict({
      ...fileDict({ url: pageUrl }),
      extractor: "generic",
    });
    await expect(readRecorded(dict)).rejects.toMatchObject({ code: "upstream_invalid" });
  });

  it("rejects with the other errors of yt-dlp", async () => {
    const error = new ServiceError("login_required", "the site demands a login");
    await expect(readRecorded(error)).rejects.toBe(error);
  });

  it.each([
    [{ _has_drm: true }, "drm_protected"],
    [{ live_status: "is_upcoming" }, "live_stream"],
    [{ _warnings: ["Sign in to confirm your age"] }, "login_required"],
  ])("says why there are no formats to a download, and the facts to others: %o", async (why, code) => {
    const dict = videoDict({ formats: [], ...why });
    await expect(readRecorded(dict, { forDownload: true })).rejects.toMatchObject({ code });
    expect(await readRecorded(dict)).toMatchObject({ title: "Otters", formats: [] });
  });

  it("bounds texts, lists and numbers", async () => {
    const info = await readRecorded(
      videoDict({
        fulltitle: "x".repeat(100_000),
        description: "x".repeat(100_000),
        duration: 1e12,
        view_count: -1,
        age_limit: 1_000,
        timestamp: 1e300,
        thumbnails: Array.from({ length: 500 }, (_, n) => ({ url: `/${n}.jpg`, width: -1 })),
        tags: Array.from({ length: 500 }, (_, n) => `tag ${n}`),
      }),
    );
    expect(info.title).toHaveLength(2_000);
    expect(info.description).toHaveLength(10_000);
    expect(info.thumbnails).toHaveLength(50);
    expect(info.thumbnails[0]).toEqual({
      url: "https://video.example.com/499.jpg",
      width: null,
      height: null,
    });
    expect(info.tags).toHaveLength(100);
    const { duration, view_count, age_limit, uploaded_at } = info;
    expect([duration, view_count, age_limit, uploaded_at]).toEqual([null, null, null, null]);
  });

  it("returns a valid record for any JSON", async () => {
    const names = [...Object.keys(fullDict), "entries", "thumbnail", "_has_drm", "__proto__"];
    const formatNames = (
      "fragments fragment_base_url http_headers cookies downloader_options has_drm " +
      "vcodec acodec manifest_url tbr fps width filesize filesize_approx language language_preference format_note"
    ).split(" ");
    // Neither can be made a number or a text.
    const deep: unknown = JSON.parse("[".repeat(50_000) + "]".repeat(50_000));
    const anyValue = fc.oneof(fc.jsonValue(), fc.constantFrom<unknown>({ toString: 1, valueOf: 1 }, deep));
    const anyFormat = fc.record(Object.fromEntries(formatNames.map((name) => [name, anyValue])), {
      requiredKeys: [],
    });
    const anyDict = fc.record(Object.fromEntries(names.map((name) => [name, anyValue])), {
      requiredKeys: [],
    });
    const dicts = fc.oneof(
      fc.jsonValue(),
      anyDict,
      anyDict.map((dict) => ({ ...dict, _type: "playlist", entries: [dict, dict] })),
      fc
        .tuple(anyDict, fc.array(anyFormat))
        .map(([dict, formats]) => ({ ...dict, formats: formats.map((each) => fileDict(each)) })),
    );
    await fc.assert(
      fc.asyncProperty(dicts, fc.boolean(), async (dict, forDownload) => {
        const info = await readRecorded(dict, { forDownload }).catch((error: unknown) => error);
        if (info instanceof ServiceError) return;
        expect([...Value.Errors(PageInfo, info)]).toEqual([]);
        expect(JSON.parse(JSON.stringify(info))).toEqual(info);
      }),
      { numRuns: 300, seed },
    );
  });
});
