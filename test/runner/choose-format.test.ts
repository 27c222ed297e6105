import { describe, expect, test } from "vitest";
import type { Format, PageInfo } from "../../src/model/page-info.ts";
import { chooseFormat, chooseIfListed } from "../../src/resolvers/choose-format.ts";
import type { TaskOptions } from "../../src/model/task.ts";
import { times } from "../contracts/task-store/harness.ts";
import { formatOf } from "../formats.ts";
import { pageOf } from "./resolver.ts";

const hls = { protocol: "m3u8", manifest_url: "https://a.test/main.m3u8" } as const;
const silentVideo = { ...hls, vcodec: "avc1", acodec: "none" };
const separateAudio = { ...hls, vcodec: "none", acodec: "mp4a", ext: "m4a" };

function choose(formats: Format[], options: TaskOptions = {}, page: Partial<PageInfo> = {}) {
  const info = pageOf(new URL("https://a.test/"), { formats, ...page });
  const { format, audio, audioOnly } = chooseFormat(info, options);
  return [format.format_id, audio?.format_id ?? null, audioOnly];
}

function refusal(formats: Format[], options: TaskOptions = {}, page: Partial<PageInfo> = {}) {
  try {
    return choose(formats, options, page);
  } catch (error) {
    return error;
  }
}

describe("without options", () => {
  test.each<[string, Format[], string]>([
    ["the highest", [formatOf("a", { height: 360 }), formatOf("b", { height: 720 })], "b"],
    ["of equal height the higher bit rate", [of("a", 720, 900), of("b", 720, 2000)], "b"],
    ["a known height before an unknown one", [formatOf("a"), of("b", 240)], "b"],
    [
      "of equal ones the muxed one",
      [formatOf("apart", { ...silentVideo, height: 720 }), of("whole", 720), formatOf("s", { ...separateAudio })],
      "whole",
    ],
    [
      "one with audio before a higher one without any audio",
      [formatOf("mute", { ...silentVideo, height: 1080 }), of("heard", 360)],
      "heard",
    ],
    ["of equal ones the first", [formatOf("a"), formatOf("b")], "a"],
    ["video before audio only", [formatOf("s", { ...separateAudio, tbr: 9 }), formatOf("p")], "p"],
    ["video without audio if there is nothing else", [formatOf("mute", silentVideo)], "mute"],
    ["audio only if there is nothing else", [formatOf("s", separateAudio)], "s"],
    ["one without DRM", [formatOf("a", { height: 720, has_drm: true }), formatOf("b")], "b"],
  ])("chooses %s", (_rule, formats, expected) => {
    expect(choose(formats)[0]).toBe(expected);
  });
});

describe("with preferred_codecs", () => {
  const video = (id: string, vcodec: string | null, height: number, more: Partial<Format> = {}) =>
    formatOf(id, { ...hls, vcodec, acodec: "mp4a", height, ...more });
  const h264 = { preferred_codecs: ["h264"] } as const satisfies TaskOptions;
  test.each<[string, Format[], TaskOptions, string]>([
    [
      "the best in the codec before a higher one in another",
      [video("a", "vp09.00", 2160), video("b", "avc1.64", 720), video("c", "avc1.64", 1080)],
      h264,
      "c",
    ],
    [
      "the first codec of the list that is there",
      [video("a", "hvc1.1", 720), video("b", "vp9", 360), video("c", "av01.0", 2160)],
      { preferred_codecs: ["h264", "vp9", "h265"] },
      "b",
    ],
    ["an unknown codec before others", [video("a", "vp9", 1080), video("b", null, 360)], h264, "b"],
    ["the best one if the codec is not there", [video("a", "vp9", 360), video("b", "av01.0", 1080)], h264, "b"],
    ["within max_height", [video("a", "avc1", 1080), video("b", "vp9", 720)], { ...h264, max_height: 720 }, "b"],
    [
      "the programme before a version with signs in the codec",
      [video("a", "avc1", 720, { preference: -1 }), video("b", "vp9", 720)],
      h264,
      "b",
    ],
    ["what has no DRM", [video("a", "avc1", 720, { has_drm: true }), video("b", "vp9", 720)], h264, "b"],
    [
      "one with audio before one without any",
      [video("mute", "avc1", 720, { acodec: "none" }), video("b", "vp9", 720)],
      h264,
      "b",
    ],
    ["the format that is named", [video("a", "avc1", 720), video("b", "vp9", 720)], { ...h264, format_id: "b" }, "b"],
    ["names of yt-dlp", [video("a", "h265", 1080), video("b", "h264", 720)], h264, "b"],
    ["the higher one of an empty list", [video("a", null, 360), video("b", "vp9", 720)], { preferred_codecs: [] }, "b"],
    ["the name of an encoder", [video("a", "vp9", 1080), video("b", "x264", 720)], h264, "b"],
    ["H.264 of Dolby Vision", [video("a", "vp9", 1080), video("b", "dva1.09.05", 720)], h264, "b"],
    [
      "H.265 of other colours only behind what is preferred, too",
      [video("a", "dvh1.05.06", 2160), video("b", "avc1.64", 720)],
      { preferred_codecs: ["h265", "h264"] },
      "b",
    ],
    [
      "a file that may be H.264 before WebM, which cannot",
      [video("a", null, 1080, { ext: "webm" }), video("b", null, 720)],
      h264,
      "b",
    ],
    [
      "WebM, which may be VP9, before what is not",
      [video("a", "avc1", 1080), video("b", null, 720, { ext: "webm" })],
      { preferred_codecs: ["vp9"] },
      "b",
    ],
  ])("chooses %s", (_rule, formats, options, expected) => {
    expect(choose(formats, options)[0]).toBe(expected);
  });

  test("takes the separate audio that fits", () => {
    const formats = [
      video("high", "vp9", 1080, { acodec: "none", ext: "webm" }),
      video("low", "avc1", 720, { acodec: "none" }),
      formatOf("opus", { ...separateAudio, acodec: "opus", ext: "webm" }),
      formatOf("aac", separateAudio),
    ];
    expect(choose(formats, h264)).toEqual(["low", "aac", false]);
  });
});

test("a file that may have no audio gets that of its manifest, if it is in one", () => {
  const inManifest = { protocol: "https", manifest_url: "https://a.test/main.mpd" } as const;
  const alone = { protocol: "https", manifest_url: null } as const;
  const chosen = (video: Partial<Format>, audio: Partial<Format>) =>
    choose([
      formatOf("v", { ...video, vcodec: "avc1" }),
      formatOf("s", { ...audio, vcodec: "none", acodec: null, ext: "m4a" }),
    ]);
  expect(chosen({ ...inManifest, acodec: null }, inManifest)).toEqual(["v", "s", false]);
  expect(chosen({ ...inManifest, acodec: "mp4a" }, inManifest)).toEqual(["v", null, false]);
  expect(chosen({ ...inManifest, acodec: null }, alone)).toEqual(["v", null, false]);
  expect(chosen({ ...alone, acodec: null }, alone)).toEqual(["v", null, false]);
});

describe("the audio of a format without audio", () => {
  const own = { ...silentVideo, height: 720 };
  const other = { ...separateAudio, manifest_url: "https://a.test/other.m3u8" };
  test.each<[string, Format[], string | null, Partial<PageInfo>?]>([
    ["is that of its manifest", [formatOf("x", other), formatOf("s", separateAudio)], "s"],
    ["else that of the page", [formatOf("x", other)], "x"],
    [
      "is in the page's language if available",
      [formatOf("fr", { ...separateAudio, language: "fr" }), formatOf("en", { ...separateAudio, language: "en" })],
      "en",
      { language: "en-GB" },
    ],
    [
      "is the first if the page states no language",
      [formatOf("fr", { ...separateAudio, language: "fr" }), formatOf("en", { ...separateAudio, language: "en" })],
      "fr",
    ],
    [
      "fits into the same container if available",
      [formatOf("webm", { ...separateAudio, ext: "webm" }), formatOf("mp4", separateAudio)],
      "mp4",
    ],
    ["is any if none fits", [formatOf("webm", { ...separateAudio, ext: "webm" })], "webm"],
    ["has no DRM", [formatOf("drm", { ...separateAudio, has_drm: true }), formatOf("open", separateAudio)], "open"],
    ["is missing if all have DRM", [formatOf("drm", { ...separateAudio, has_drm: true })], null],
  ])("%s", (_rule, audio, expected, page = {}) => {
    expect(choose([formatOf("p", own), ...audio], {}, page)).toEqual(["p", expected, false]);
    const pinned = choose([formatOf("p", own), ...audio], { format_id: "p" }, page);
    expect(pinned).toEqual(["p", expected, false]);
  });

  test("is found for WebM in WebM", () => {
    const formats = [
      formatOf("p", { ...own, ext: "webm" }),
      formatOf("mp4", separateAudio),
      formatOf("webm", { ...separateAudio, mime_type: "audio/webm" }),
    ];
    expect(choose(formats)).toEqual(["p", "webm", false]);
  });

  test("is chosen if it may be needed: unknown audio, and separate audio in the same manifest", () => {
    const unsure = formatOf("p", { ...hls, vcodec: "avc1" });
    expect(choose([unsure, formatOf("s", separateAudio)])).toEqual(["p", "s", false]);
    expect(choose([unsure, formatOf("s", other)])).toEqual(["p", null, false]);
    expect(choose([formatOf("file"), formatOf("s", separateAudio)])).toEqual(["file", null, false]);
    const audio = formatOf("a", { ...separateAudio, acodec: null });
    expect(choose([audio, formatOf("s", separateAudio)], { format_id: "a" })).toEqual(["a", null, false]);
    const known = formatOf("p", { ...hls, vcodec: "avc1", acodec: "mp4a" });
    expect(choose([known, formatOf("s", separateAudio)])).toEqual(["p", null, false]);
  });
});

describe("format_id", () => {
  const formats = [of("a", 1080), of("b", 360), formatOf("s", separateAudio), formatOf("m", silentVideo)];

  test("names the format, whatever its height", () => {
    expect(choose(formats, { format_id: "b", max_height: 100 })).toEqual(["b", null, false]);
    expect(choose(formats, { format_id: "s" })).toEqual(["s", null, false]);
  });

  test("with audio_only selects its audio only", () => {
    expect(choose(formats, { format_id: "b", audio_only: true })).toEqual(["b", null, true]);
    expect(choose(formats, { format_id: "s", audio_only: true })).toEqual(["s", null, false]);
    const error = { code: "format_unavailable", retryable: false };
    expect(refusal(formats, { format_id: "m", audio_only: true })).toMatchObject(error);
  });

  test("that is not listed is refused with up to ten available ids", () => {
    const many = times(12, (n) => formatOf(`f${n}`));
    const error = refusal(many, { format_id: "zz" });
    expect(error).toMatchObject({ name: "ServiceError", code: "format_unavailable" });
    expect(String(error)).toContain('"zz" is not listed; available: "f0", "f1", "f2"');
    expect(String(error)).toContain('"f9" and 2 more');
    expect(String(refusal(formats, { format_id: "zz" }))).not.toContain("more");
  });

  test("that is not listed, such as an expression of yt-dlp, is refused with what takes the best one", () => {
    expect(String(refusal(formats, { format_id: "best" }))).toMatch(/; without format_id the best one is taken$/);
  });
});

describe("max_height", () => {
  const formats = [of("a", 1080), of("b", 720), of("c", 360), formatOf("unknown")];

  test.each([
    [2000, "a"],
    [1080, "a"],
    [1079, "b"],
    [400, "c"],
    [359, "unknown"],
  ])("of %d chooses the best of at most this height: %s", (max_height, id) => {
    expect(choose(formats, { max_height })).toEqual([id, null, false]);
  });

  test("below all heights is refused with the available ones", () => {
    const error = refusal(formats.slice(0, 3), { max_height: 100 });
    expect(error).toMatchObject({ code: "format_unavailable", retryable: false });
    expect(String(error)).toContain("at most 100 pixels high; available: 1080, 720, 360");
  });

  test("does not exclude audio-only formats", () => {
    expect(choose([formatOf("s", separateAudio)], { max_height: 100 })).toEqual(["s", null, false]);
  });
});

describe("audio_only", () => {
  test("chooses the best audio-only format, in the page's language", () => {
    const formats = [
      of("p", 720),
      formatOf("fr", { ...separateAudio, language: "fr" }),
      formatOf("de", { ...separateAudio, language: "de" }),
    ];
    expect(choose(formats, { audio_only: true })).toEqual(["fr", null, false]);
    expect(choose(formats, { audio_only: true }, { language: "de" })).toEqual(["de", null, false]);
  });

  test("chooses the programme in a format with video before a separate dub or description", () => {
    const video = { ...of("v", 720), acodec: "mp4a.40.2" };
    const unknown = { ...video, acodec: null };
    for (const audio_role of ["description", "commentary", "dub"] as const) {
      const separate = formatOf("s", { ...separateAudio, audio_role });
      expect(choose([video, separate], { audio_only: true })).toEqual(["v", null, true]);
      expect(choose([unknown, separate], { audio_only: true })).toEqual(["s", null, false]);
    }
    const separate = formatOf("s", { ...separateAudio, roles: ["alternate"], preference: -1 });
    expect(choose([video, separate], { audio_only: true })).toEqual(["s", null, false]);
  });

  test("chooses the best format with audio if none is audio only", () => {
    const formats = [formatOf("mute", silentVideo), of("a", 720), of("b", 360)];
    expect(choose(formats, { audio_only: true })).toEqual(["a", null, true]);
  });

  test("is refused if no format has audio", () => {
    const error = { code: "format_unavailable", retryable: false };
    expect(refusal([formatOf("mute", silentVideo)], { audio_only: true })).toMatchObject(error);
  });
});

test.each<[string, Format[], TaskOptions]>([
  ["without options", [of("a", 720, null, true), of("b", 360, null, true)], {}],
  ["format_id", [of("a", 720, null, true), of("b", 360)], { format_id: "a" }],
  ["max_height", [of("a", 720), of("b", 360, null, true)], { max_height: 400 }],
  ["video with DRM beside audio without", [of("a", 720, null, true), formatOf("s", separateAudio)], {}],
])("DRM on all matching formats is drm_protected: %s", (_case, formats, options) => {
  expect(refusal(formats, options)).toMatchObject({ code: "drm_protected", retryable: false });
});

describe("after the page was read again", () => {
  const programme = { ...separateAudio, language: "en", tbr: 128 };
  const before = { ...programme, audio_role: "original" } as const;
  const film = formatOf("video", { ...silentVideo, height: 720 });
  const page = (...formats: Format[]) => pageOf(new URL("https://a.test/"), { formats: [film, ...formats] });
  const chosen = chooseFormat(page(formatOf("1", before)), {});

  test.each<[string, Format[], string]>([
    [
      "the same audio under another id before a description of its language",
      [formatOf("2", { ...programme, audio_role: "description" }), formatOf("3", { ...before, tbr: 130 })],
      "3",
    ],
    [
      "not what has its id now, if that is a dub",
      [formatOf("1", { ...programme, audio_role: "dub" }), formatOf("2", before)],
      "2",
    ],
    ["what has its id, if its role is not known any more", [formatOf("1", programme), formatOf("2", before)], "1"],
  ])("it chooses %s", (_name, formats, expected) => {
    expect(chooseFormat(page(...formats), {}, chosen).audio?.format_id).toBe(expected);
  });

  test("it chooses the audio of the video's group under its new name", () => {
    const grouped = (name: string) => {
      const sounds = ["high", "low"].map((group) => {
        return formatOf(`${name}-${group}`, { ...separateAudio, audio_group: `${name}-${group}` });
      });
      return [{ ...film, audio_group: `${name}-low` }, ...sounds];
    };
    const pageWith = (name: string) => pageOf(new URL("https://a.test/"), { formats: grouped(name) });
    const first = chooseFormat(pageWith("a"), {});
    const again = chooseFormat(pageWith("b"), {}, first);
    expect([first, again].map(({ audio }) => audio?.format_id)).toEqual(["a-low", "b-low"]);
  });
});

test("a page without formats is no_media, or live_stream before the event begins", () => {
  const noMedia = { code: "no_media", retryable: false };
  const message = "there is no format to download on https://a.test/";
  expect(refusal([], {}, { extractor: "generic" })).toMatchObject({ ...noMedia, message });
  const alone = `${message}: neither the page nor its manifests list one that can be read, and yt-dlp`;
  const withoutYtDlp = `${alone}, which reads more sites, is not in use`;
  expect(refusal([])).toMatchObject({ ...noMedia, message: withoutYtDlp });
  const asked = refusal([], {}, { extractor_version: "2026.10.26" });
  expect(asked).toMatchObject({ ...noMedia, message: `${alone} found none` });
  const webpage_url = "https://a.test/login?next=secret#top";
  const elsewhere = refusal([], {}, { extractor: "generic", webpage_url });
  expect(elsewhere).toMatchObject({ ...noMedia, message: `${message} (the page is https://a.test/login)` });
  const error = { code: "live_stream", retryable: false };
  expect(refusal([], {}, { live_status: "is_upcoming" })).toMatchObject(error);
  const fromManifest = { live_status: "is_upcoming", sources: { live_status: "manifest" } } as const;
  expect(refusal([], {}, fromManifest)).toMatchObject({ ...error, retryable: true });
});

test("a playlist is refused with the URL of an entry", () => {
  const entries = [1, 2].map((n) => ({ url: `https://a.test/${n}`, title: null, duration: null }));
  const error = refusal([], {}, { media_type: "none", entries });
  expect(error).toMatchObject({ code: "playlist", retryable: false });
  expect(String(error)).toContain(
    [
      "https://a.test/ is a playlist of 2 entries:",
      'ask POST /tasks/ for them with "options": {"entries": "all"}, or take the URL of one, such as https://a.test/1',
    ].join(" "),
  );
  const message = "there is no format to download on https://a.test/: it is a playlist without entries";
  expect(refusal([], {}, { entries: [], entries_count: 0 })).toMatchObject({ code: "no_media", message });
});

test("a fault of the program is not taken for a page without formats", () => {
  const page = pageOf(new URL("https://a.test/"), { formats: [] });
  expect(chooseIfListed(page, {})).toBeNull();
  expect(() => chooseIfListed({ ...page, formats: [null as never] }, {})).toThrow(TypeError);
});

test("it chooses among 4,000 formats", () => {
  const formats = [
    ...times(2000, (n) => formatOf(`p${n}`, { ...silentVideo, ext: "webm", height: n })),
    ...times(2000, (n) => formatOf(`s${n}`, separateAudio)),
  ];
  expect(choose(formats)).toEqual(["p1999", "s0", false]);
});

function of(id: string, height: number, tbr: number | null = null, has_drm = false): Format {
  return formatOf(id, { height, tbr, has_drm });
}
