import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newTask } from "../../../src/feed/task-changes.ts";
import { foldName, nameFiles, previewPath } from "../../../src/runner/library/names.ts";
import { defaultTemplate, type NamedTask, parseTemplate } from "../../../src/runner/library/template.ts";
import type { PageInfo } from "../../../src/model/page-info.ts";
import type { ResultFile } from "../../../src/model/task.ts";
import { formatOf } from "../../formats.ts";
import { pageInfo } from "../../page-info.ts";
import { anyCharacter } from "../../any-character.ts";
import { seed } from "../../random.ts";

const medium: ResultFile = { kind: "media", name: "x.mp4", mime_type: "video/mp4", size: 1, sha256: "00", url: "/x" };
const subtitles = (language: string | null, ext: string, role?: ResultFile["role"]): ResultFile => ({
  ...medium,
  kind: "subtitles",
  name: `x.${ext}`,
  language,
  ...(role && { role }),
});
const cover: ResultFile = { ...medium, kind: "cover", name: "x.JPG" };

function named(info: Partial<PageInfo> | null, task: Partial<NamedTask> = {}): NamedTask {
  const made = newTask("https://example.com/", {}, new Date());
  return { ...made, id: "id", info: info && pageInfo(info), files: [medium], ...task };
}

function pathOf(task: NamedTask, template = defaultTemplate, suffix?: string): string {
  const { folders, names } = nameFiles(task, parseTemplate(template), { suffix });
  return [...folders, names[0]].join("/");
}

const known = { uploader: "Ann", uploaded_at: "2026-01-02T03:04:05Z", title: "A film", video_id: "a1" };

describe("the path of a file", () => {
  test.each<[Partial<PageInfo>, string]>([
    [known, "Ann/2026-01-02 A film [a1].mp4"],
    [{ ...known, uploader: null }, "2026-01-02 A film [a1].mp4"],
    [{ ...known, uploaded_at: null }, "Ann/A film [a1].mp4"],
    [{ uploader: "Ann", title: "A film" }, "Ann/A film.mp4"],
    [{ uploader: "Ann" }, "Ann/id.mp4"],
    [{}, "id.mp4"],
    [{ title: "clip.MP4" }, "clip.mp4"],
    [{ title: "clip .mp4" }, "clip.mp4"],
    [{ title: "clip.mov" }, "clip.mov.mp4"],
  ])("of %j is %s: what is unknown leaves with its brackets", (info, path) => {
    expect(pathOf(named(info))).toBe(path);
  });

  test.each([
    [720, "A film (720p).mp4"],
    [null, "A film.mp4"],
  ])("is known before a download, with the height %s of the format that would be taken", (height, path) => {
    const page = pageInfo({ ...known, formats: [formatOf("a", { height })] });
    const template = parseTemplate("{title} ({height}p)");
    expect(previewPath(new URL(page.url), page, template)).toBe(path);
  });

  test.each([
    ["{series|uploader}/{title}", "Ann/A film.mp4"],
    ["{playlist} (S{season_number:02}E{episode_number:02}) {title}", "A list (S02E03) A film.mp4"],
    ["{title} - {language} - {video_id}", "A film - a1.mp4"],
    ["{language} - {title}", "A film.mp4"],
    ["{title} - {language}", "A film.mp4"],
    ["{title} (in {language}, {age_limit})", "A film.mp4"],
    ["{title} (in {language}, {video_id})", "A film (in, a1).mp4"],
    ["{owner}/{playlist}/{playlist_index:03} {title}", "bob/A list/007 A film.mp4"],
    ["Films/{language}/{title}", "Films/A film.mp4"],
  ])("follows the template %s", (template, path) => {
    const collection = { id: "c", index: 7, title: "A list" };
    const info = { ...known, season_number: 2, episode_number: 3 };
    expect(pathOf(named(info, { owner: "bob", collection }), template)).toBe(path);
  });

  test.each([
    ["../../etc/passwd", "_.._etc_passwd.mp4"],
    ["..", "id.mp4"],
    ["CON", "_CON.mp4"],
    ["nul.txt", "_nul.txt.mp4"],
    ["COM¹", "_COM¹.mp4"],
    ["~root -rf", "root -rf.mp4"],
    ["a\u0000b\nc\u202Ed", "a bcd.mp4".replace("bc", "b c")],
    ["e\u0301", "é.mp4"],
    ["\uE000\uFFFE\u3164 . ", "id.mp4"],
    ['<>:"/\\|?*', "_________.mp4"],
  ])("of the title %j is %j", (title, path) => {
    expect(pathOf(named({ title }), "{title}")).toBe(path);
  });

  test("keeps the id and whole characters if the title is too long, and a number", () => {
    const family = "👩\u200D👩\u200D👧";
    const task = named({ title: family.repeat(600), video_id: "a1" });
    expect(pathOf(task, "{title} [{video_id}]")).toBe(`${family.repeat(13)} [a1].mp4`);
    expect(pathOf(task, "{title} [{video_id}]", " (12)")).toMatch(/ \[a1\] \(12\)\.mp4$/);
  });
});

test("subtitles and cover are named as Jellyfin, Plex and Kodi find them, each differently", () => {
  const files = [
    medium,
    subtitles("en", "srt"),
    subtitles("en", "vtt", "forced"),
    subtitles("pt-BR", "srt", "captions"),
    subtitles("../x", "srt"),
    subtitles(null, "srt"),
    cover,
  ];
  expect(nameFiles(named({ title: "A film" }, { files }), parseTemplate("{title}")).names).toEqual([
    "A film.mp4",
    "A film.en.srt",
    "A film.en.forced.vtt",
    "A film.pt-BR.sdh.srt",
    "A film.und.srt",
    "A film.und.2.srt",
    "A film-thumb.jpg",
  ]);
});

test("a name is safe whatever the page says", () => {
  const text = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 150 }),
    fc.string({
      unit: fc.constantFrom(".", " ", "-", "~", "/", "é", "👩\u200D👧", "con", "\u202E", "[", "\u3164"),
      maxLength: 200,
    }),
  );
  const files = [medium, subtitles("en", "vtt", "forced"), cover];
  fc.assert(
    fc.property(text, text, text, fc.integer({ min: 1, max: 9999 }), (title, uploader, video_id, number) => {
      const task = named({ title, uploader, video_id }, { files });
      const { folders, names } = nameFiles(task, parseTemplate("{uploader}/{title} [{video_id}]"), {
        suffix: ` (${number})`,
      });
      for (const name of [...folders, ...names]) {
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
        expect(name).toBe(name.normalize("NFC"));
        expect(name).toMatch(/^[^\s.~\-/\\:*?"<>|\p{Cc}][^/\\:*?"<>|\p{Cc}\p{Bidi_C}]*(?<![\s.])$/u);
        expect(name).not.toMatch(/^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i);
      }
      expect(names.map((name) => /(\.en\.forced\.vtt|-thumb\.jpg|\.mp4)$/.test(name))).toEqual([true, true, true]);
    }),
    { numRuns: 25, seed },
  );
});

test("names that a file system takes for one are folded to one", () => {
  for (const [one, other] of [
    ["A film.MP4", "a FILM.mp4"],
    ["\u00e9", "e\u0301"],
    ["STRASSE", "straße"],
    ["STRASSE", "STRAẞE"],
    ["ﬁlm", "film"],
    ["a\u200Db", "ab"],
    ["\u212A", "k"],
  ] as const) {
    expect(foldName(one)).toBe(foldName(other));
  }
  expect(foldName("a")).not.toBe(foldName("b"));
});

describe("a template", () => {
  test.each([
    ["{title", "close each"],
    ["title}", "close each"],
    ["{ext}", "no fields but"],
    ["{constructor}", "no fields but"],
    ["{}", "no fields but"],
    ["{title:date}", "no format but"],
    ["{title:03}", "no format but"],
    ["/{title}", "before and after each /"],
    ["../{title}", "before and after each /"],
    ["{title}/", "before and after each /"],
    ["a:b {title}", "not have the character"],
    ["a\\b {title}", "not have the character"],
    ["a/".repeat(10) + "{title}", "at most 10"],
    ["a".repeat(201), "at most 200"],
  ])("%j is refused", (template, rule) => {
    expect(() => parseTemplate(template)).toThrow(rule);
  });
});
