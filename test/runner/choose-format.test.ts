import { describe, expect, test } from "vitest";
import type { Format, PageInfo } from "../../src/page-info.ts";
import { chooseFormat } from "../../src/runner/choose-format.ts";
import type { TaskOptions } from "../../src/task.ts";
import { times } from "../contracts/task-store/harness.ts";
import { formatOf } from "../formats.ts";
import { pageOf } from "./resolver.ts";

const hls = { protocol: "m3u8", manifest_url: "https://a.test/main.m3u8" } as const;
const silent = { ...hls, vcodec: "avc1", acodec: "none" };
const sound = { ...hls, vcodec: "none", acodec: "mp4a", ext: "m4a" };

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

describe("where nothing is said", () => {
  test.each<[string, Format[], string]>([
    ["the highest", [formatOf("a", { height: 360 }), formatOf("b", { height: 720 })], "b"],
    ["of equal height the higher bit rate", [of("a", 720, 900), of("b", 720, 2000)], "b"],
    ["a known height before an unknown one", [formatOf("a"), of("b", 240)], "b"],
    [
      "of equal ones that with its sound inside",
      [
        formatOf("apart", { ...silent, height: 720 }),
        of("whole", 720),
        formatOf("s", { ...sound }),
      ],
      "whole",
    ],
    [
      "one with sound before a higher one whose sound is nowhere",
      [formatOf("mute", { ...silent, height: 1080 }), of("heard", 360)],
      "heard",
    ],
    ["of equal ones the first", [formatOf("a"), formatOf("b")], "a"],
    ["pictures before mere sound", [formatOf("s", { ...sound, tbr: 9 }), formatOf("p")], "p"],
    ["mute pictures where there is nothing else", [formatOf("mute", silent)], "mute"],
    ["mere sound where there is nothing else", [formatOf("s", sound)], "s"],
    ["what has no DRM", [formatOf("a", { height: 720, has_drm: true }), formatOf("b")], "b"],
  ])("%s is taken", (_rule, formats, expected) => {
    expect(choose(formats)[0]).toBe(expected);
  });
});

describe("the sound of a format that has none inside", () => {
  const own = { ...silent, height: 720 };
  const other = { ...sound, manifest_url: "https://a.test/other.m3u8" };
  test.each<[string, Format[], string | null, Partial<PageInfo>?]>([
    ["is that of its manifest", [formatOf("x", other), formatOf("s", sound)], "s"],
    ["else that of the page", [formatOf("x", other)], "x"],
    [
      "is in the page's language where one is",
      [formatOf("fr", { ...sound, language: "fr" }), formatOf("en", { ...sound, language: "en" })],
      "en",
      { language: "en-GB" },
    ],
    [
      "is the first where the page says no language",
      [formatOf("fr", { ...sound, language: "fr" }), formatOf("en", { ...sound, language: "en" })],
      "fr",
    ],
    [
      "fits into the same container where one does",
      [formatOf("webm", { ...sound, ext: "webm" }), formatOf("mp4", sound)],
      "mp4",
    ],
    ["is any, where none fits", [formatOf("webm", { ...sound, ext: "webm" })], "webm"],
    ["has no DRM", [formatOf("drm", { ...sound, has_drm: true }), formatOf("open", sound)], "open"],
    ["is nowhere, where all have DRM", [formatOf("drm", { ...sound, has_drm: true })], null],
  ])("%s", (_rule, sounds, expected, page = {}) => {
    expect(choose([formatOf("p", own), ...sounds], {}, page)).toEqual(["p", expected, false]);
    const pinned = choose([formatOf("p", own), ...sounds], { format_id: "p" }, page);
    expect(pinned).toEqual(["p", expected, false]);
  });

  test("is found for WebM in WebM", () => {
    const formats = [
      formatOf("p", { ...own, ext: "webm" }),
      formatOf("mp4", sound),
      formatOf("webm", { ...sound, mime_type: "audio/webm" }),
    ];
    expect(choose(formats)).toEqual(["p", "webm", false]);
  });

  test("is given where it may be needed: unknown sound, and sound apart in the same manifest", () => {
    const unsure = formatOf("p", { ...hls, vcodec: "avc1" });
    expect(choose([unsure, formatOf("s", sound)])).toEqual(["p", "s", false]);
    expect(choose([unsure, formatOf("s", other)])).toEqual(["p", null, false]);
    expect(choose([formatOf("file"), formatOf("s", sound)])).toEqual(["file", null, false]);
    const known = formatOf("p", { ...hls, vcodec: "avc1", acodec: "mp4a" });
    expect(choose([known, formatOf("s", sound)])).toEqual(["p", null, false]);
  });
});

describe("format_id", () => {
  const formats = [of("a", 1080), of("b", 360), formatOf("s", sound), formatOf("m", silent)];

  test("names the format, whatever its height", () => {
    expect(choose(formats, { format_id: "b", max_height: 100 })).toEqual(["b", null, false]);
    expect(choose(formats, { format_id: "s" })).toEqual(["s", null, false]);
  });

  test("with audio_only takes its sound alone", () => {
    expect(choose(formats, { format_id: "b", audio_only: true })).toEqual(["b", null, true]);
    expect(choose(formats, { format_id: "s", audio_only: true })).toEqual(["s", null, false]);
    const error = { code: "format_unavailable", retryable: false };
    expect(refusal(formats, { format_id: "m", audio_only: true })).toMatchObject(error);
  });

  test("that is not listed is refused, with up to ten that are", () => {
    const many = times(12, (n) => formatOf(`f${n}`));
    const error = refusal(many, { format_id: "zz" });
    expect(error).toMatchObject({ name: "ServiceError", code: "format_unavailable" });
    expect(String(error)).toContain('"zz" is not listed; available: "f0", "f1", "f2"');
    expect(String(error)).toContain('"f9" and 2 more');
    expect(String(refusal(formats, { format_id: "zz" }))).not.toContain("more");
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
  ])("of %d takes the best that is no higher: %s", (max_height, id) => {
    expect(choose(formats, { max_height })).toEqual([id, null, false]);
  });

  test("that none keeps to is refused, and the heights that there are named", () => {
    const error = refusal(formats.slice(0, 3), { max_height: 100 });
    expect(error).toMatchObject({ code: "format_unavailable", retryable: false });
    expect(String(error)).toContain("at most 100 pixels high; available: 1080, 720, 360");
  });

  test("does not keep mere sound from being taken", () => {
    expect(choose([formatOf("s", sound)], { max_height: 100 })).toEqual(["s", null, false]);
  });
});

describe("audio_only", () => {
  test("takes the best sound that stands alone, in the page's language", () => {
    const formats = [
      of("p", 720),
      formatOf("fr", { ...sound, language: "fr" }),
      formatOf("de", { ...sound, language: "de" }),
    ];
    expect(choose(formats, { audio_only: true })).toEqual(["fr", null, false]);
    expect(choose(formats, { audio_only: true }, { language: "de" })).toEqual(["de", null, false]);
  });

  test("takes the sound out of the best format that has some, where none stands alone", () => {
    const formats = [formatOf("mute", silent), of("a", 720), of("b", 360)];
    expect(choose(formats, { audio_only: true })).toEqual(["a", null, true]);
  });

  test("is refused where nothing has sound", () => {
    const error = { code: "format_unavailable", retryable: false };
    expect(refusal([formatOf("mute", silent)], { audio_only: true })).toMatchObject(error);
  });
});

test.each<[string, Format[], TaskOptions]>([
  ["nothing said", [of("a", 720, null, true), of("b", 360, null, true)], {}],
  ["format_id", [of("a", 720, null, true), of("b", 360)], { format_id: "a" }],
  ["max_height", [of("a", 720), of("b", 360, null, true)], { max_height: 400 }],
  ["pictures with DRM beside open sound", [of("a", 720, null, true), formatOf("s", sound)], {}],
])("all that would do having DRM is drm_protected: %s", (_case, formats, options) => {
  expect(refusal(formats, options)).toMatchObject({ code: "drm_protected", retryable: false });
});

test("a page without formats is no_media, or live_stream where the event has not begun", () => {
  expect(refusal([])).toMatchObject({ code: "no_media", retryable: false });
  const error = { code: "live_stream", retryable: false };
  expect(refusal([], {}, { live_status: "is_upcoming" })).toMatchObject(error);
});

test("two thousand formats and as many sounds are no trouble", () => {
  const formats = [
    ...times(2000, (n) => formatOf(`p${n}`, { ...silent, ext: "webm", height: n })),
    ...times(2000, (n) => formatOf(`s${n}`, sound)),
  ];
  expect(choose(formats)).toEqual(["p1999", "s0", false]);
});

function of(id: string, height: number, tbr: number | null = null, has_drm = false): Format {
  return formatOf(id, { height, tbr, has_drm });
}
