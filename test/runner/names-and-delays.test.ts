import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { fileName, mediumName } from "../../src/files/file-name.ts";
import { listFiles } from "../../src/runner/list-files.ts";
import { nameInPath } from "../../src/model/url-parts.ts";
import { retryDelayMs } from "../../src/runner/retry-decision.ts";
import { anyCharacter } from "../any-character.ts";
import { seed } from "../random.ts";

describe("a file's name", () => {
  test.each([
    ["A film", "A film.mp4"],
    ["  Ünïcödé — 日本語 🎬  ", "Ünïcödé — 日本語 🎬.mp4"],
    ['a/b\\c:d*e?f"g<h>i|j', "a_b_c_d_e_f_g_h_i_j.mp4"],
    ["../../etc/passwd", "_.._etc_passwd.mp4"],
    ["...hidden", "hidden.mp4"],
    ["--output=/etc/passwd", "output=_etc_passwd.mp4"],
    [" -. -rf ", "rf.mp4"],
    ["---", "id.mp4"],
    ["dots at the end. . .", "dots at the end.mp4"],
    ["tab\tnew\nline\u0000nul\u007f", "tab new line nul.mp4"],
    ["evil\u202Egpj.exe\u2066x\u200E\uFEFF", "evilgpj.exex.mp4"],
    ["👩\u200D👩\u200D👧", "👩\u200D👩\u200D👧.mp4"],
    ["lone \uD800 surrogate", "lone \uFFFD surrogate.mp4"],
    ["e\u0301", "é.mp4"],
    ["CON", "_CON.mp4"],
    ["nul.tar", "_nul.tar.mp4"],
    ["aux .x", "_aux .x.mp4"],
    ["Lpt1.", "_Lpt1.mp4"],
    ["con:", "con_.mp4"],
    ["console", "console.mp4"],
    ["A con", "A con.mp4"],
    ["", "id.mp4"],
    [" . \u200D. ", "id.mp4"],
    ["\u202E\u0007", "id.mp4"],
    [null, "id.mp4"],
  ])("of %j is %j", (title, name) => {
    expect(fileName(title, ".mp4", "id")).toBe(name);
  });

  test("has at most 200 bytes, and ends with a whole character", () => {
    expect(fileName("ä".repeat(500), ".mp4", "id")).toBe(`${"ä".repeat(98)}.mp4`);
    const family = "👩\u200D👩\u200D👧";
    expect(fileName(family.repeat(99), ".webm", "id")).toBe(`${family.repeat(10)}.webm`);
    expect(fileName(`a${"\u0301".repeat(999)}`, ".mp4", "id")).toBe("id.mp4");
  });

  test.each(["", "a/b", ".mp4", "x".repeat(36)])("leaves the extension %j out", (ext) => {
    expect(fileName("A film", `.${ext}`, "id")).toBe("A film");
  });

  test("of a device has at most 200 bytes, too", () => {
    expect(fileName(`con.${"x".repeat(500)}`, ".mp4", "id")).toBe(`_con.${"x".repeat(191)}.mp4`);
    expect(fileName(`con a${"\u0301".repeat(999)}`, ".mp4", "id")).toBe("_con.mp4");
  });

  test("is safe whatever the title", () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 120 }), (title) => {
        const name = fileName(title, ".mp4", "id");
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(200);
        expect(name).toMatch(/^[^./\-\\:*?"<>|\s\p{Cc}][^/\\:*?"<>|\p{Cc}]*\.mp4$/u);
        expect(name.isWellFormed()).toBe(true);
      }),
      { seed },
    );
  });
});

describe("the files of a task", () => {
  const file = { path: "/x", mime_type: "text/vtt", size: 1, sha256: "00" };
  const subtitles = { kind: "subtitles", ext: "vtt", ...file } as const;

  test("are named after the title, by language and role, each differently", () => {
    const others = [
      { ...subtitles, language: "en" },
      { ...subtitles, language: "en", role: "forced" as const },
      { ...subtitles, language: "EN" },
      { ...subtitles, language: null },
      { ...subtitles, language: "../x" },
      { ...file, kind: "cover", ext: "jpg" } as const,
    ];
    const medium = { ...file, kind: "media", ext: "mp4", mime_type: "video/mp4" } as const;
    const listed = listFiles(medium, others, { title: "A film", id: "id" });
    expect(listed.map(({ name }) => name)).toEqual([
      "A film.mp4",
      "A film.en.vtt",
      "A film.en.forced.vtt",
      "A film.EN.2.vtt",
      "A film.und.vtt",
      "A film.und.2.vtt",
      "A film.jpg",
    ]);
    expect(listed[1]).toEqual({
      kind: "subtitles",
      name: "A film.en.vtt",
      language: "en",
      mime_type: "text/vtt",
      size: 1,
      sha256: "00",
      url: "/tasks/id/files/A%20film.en.vtt",
    });
  });
});

describe("a title that ends with an extension", () => {
  const file = { path: "/x", mime_type: "video/mp4", size: 1, sha256: "00" };
  const medium = { ...file, kind: "media", ext: "mp4" } as const;
  const others = [
    { ...file, kind: "subtitles", ext: "vtt", language: "en" } as const,
    { ...file, kind: "cover", ext: "jpg" } as const,
  ];

  test.each([
    ["clip.mp4", ["clip.mp4", "clip.en.vtt", "clip.jpg"]],
    ["CLIP.MP4 ", ["CLIP.mp4", "CLIP.en.vtt", "CLIP.jpg"]],
    ["clip.mp4\u200E\0 ...", ["clip.mp4", "clip.en.vtt", "clip.jpg"]],
    ["clip.mp4.mp4", ["clip.mp4.mp4", "clip.mp4.en.vtt", "clip.mp4.jpg"]],
    ["clip.jpg", ["clip.jpg.mp4", "clip.jpg.en.vtt", "clip.jpg.jpg"]],
    ["clip.mov", ["clip.mov.mp4", "clip.mov.en.vtt", "clip.mov.jpg"]],
    ["What is mp4", ["What is mp4.mp4", "What is mp4.en.vtt", "What is mp4.jpg"]],
    [".mp4", ["mp4.mp4", "mp4.en.vtt", "mp4.jpg"]],
  ])("gives it once to the medium, if it is its own: %j", (title, names) => {
    expect(listFiles(medium, others, { title, id: "id" }).map(({ name }) => name)).toEqual(names);
    expect(mediumName(title, "mp4", "id")).toBe(names[0]);
  });
});

describe("the name in a URL", () => {
  test.each([
    ["https://example.com/films/a%20b%C3%A4r.m3u8?token=1#t", "a b\u00E4r"],
    ["https://example.com/watch/v1.2.final", "v1.2"],
    ["https://example.com/watch/", null],
    ["https://example.com/%ff", "%ff"],
    ["none", null],
  ])("of %s is %s", (address, name) => {
    expect(nameInPath(address)).toBe(name);
  });
});

describe("the delay before a retry", () => {
  test("lets a task outlive a site that is down for two minutes, and not wait for more than five, by default", () => {
    const { maxAttempts, backoffMs } = readConfig({}).runner;
    const totals = [0, 1].map((random) => {
      const delays = Array.from({ length: maxAttempts - 1 }, (_, n) =>
        retryDelayMs(n + 1, { backoffMs, random: () => random }),
      );
      return delays.reduce((sum, delayMs) => sum + delayMs, 0);
    });
    expect(totals[0]).toBeGreaterThan(120_000);
    expect(totals[1]).toBeLessThan(300_000);
  });

  const delay = (attempt: number, random: number, retryAfterS?: number) =>
    retryDelayMs(attempt, { backoffMs: 1000, random: () => random }, retryAfterS);

  test("doubles with each attempt, up to five minutes", () => {
    const waits = [1, 2, 3, 9, 10, 60, 5000].map((attempt) => delay(attempt, 1));
    expect(waits).toEqual([1000, 2000, 4000, 256_000, 300_000, 300_000, 300_000]);
  });

  test("is spread over the second half of its length", () => {
    expect([delay(3, 0), delay(3, 0.5), delay(3, 1)]).toEqual([2000, 3000, 4000]);
  });

  test("is never shorter than the server asks, even for more than five minutes", () => {
    expect([delay(1, 1, 30), delay(6, 1, 30), delay(1, 1, 3600)]).toEqual([30_000, 32_000, 3_600_000]);
  });
});
