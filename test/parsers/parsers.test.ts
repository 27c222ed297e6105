import { describe, expect, it } from "vitest";
import { isFrontPage, isSamePage, tryParseUrl } from "../../src/parsers/url.ts";
import { parseAttributes } from "../../src/resolvers/page/markup/attributes.ts";
import { parseDuration, parseCount, parseOffset, parsePixels, parseQuality } from "../../src/parsers/quantities.ts";
import { parseDate } from "../../src/parsers/date.ts";
import { parseLine, parseParagraphs, parseLanguage } from "../../src/parsers/text.ts";

describe("durations", () => {
  it.each([
    ["PT4M40S", 280],
    ["T1M1S", 61],
    ["PT00H01M15S", 75],
    ["P0DT0H3M", 180],
    ["P0Y0M0DT0H0M9S", 9],
    ["P1W", 604_800],
    ["PT1M48.393S", 108.393],
    ["PT1M48,5S", 108.5],
    ["PT2180S", 2180],
    ["PT331M51S", 19_911],
    ["pt1h2m3s", 3723],
    ["1H 2M 3S", 3723],
    ["30:06", 1806],
    ["01:28:41", 5321],
    ["1:02.5", 62.5],
    ["120", 120],
    ["8.98", 8.98],
    ["0.8400000000000001", 0.84],
    ["0:01.8400000000000001", 1.84],
    ["90 sec", 90],
  ])("%s are %d seconds", (text, seconds) => {
    expect(parseDuration(text)).toBe(seconds);
  });

  it.each(["", "PT", "P", "PT0M0S", "0", "00:00", "PY0M0D0TH0M2S20", "-PT5S", "P1Y", "PT242860M15S", "soon"])(
    "%j is no duration",
    (text) => {
      expect(parseDuration(text)).toBeNull();
    },
  );

  it("of 0 are offsets", () => {
    const stated = ["0", "0.0", "00:00:00", "PT0H0M0S", "1:02.5", "PT", "", "soon"];
    expect(stated.map(parseOffset)).toEqual([0, 0, 0, 0, 62.5, null, null, null]);
  });
});

describe("dates", () => {
  it.each([
    ["2018-03-11T00:40+0100", "2018-03-10T23:40:00Z"],
    ["2018-03-18T16:33:36.531+01:00", "2018-03-18T15:33:36.531Z"],
    ["2022-07-26 10:51:36 -0400", "2022-07-26T14:51:36Z"],
    ["2013-07-16T16:26:44-04", "2013-07-16T20:26:44Z"],
    ["2021-05-24T14:13:28", "2021-05-24T14:13:28Z"],
    ["2019-10-11t14:59:54z", "2019-10-11T14:59:54Z"],
    ["2020-09-15", "2020-09-15"],
    ["20200915", "2020-09-15"],
    ["1378739698", "2013-09-09T15:14:58Z"],
    ["1378739698000", "2013-09-09T15:14:58Z"],
    ["Tue, 24 May 2016 20:49:03 GMT", "2016-05-24T20:49:03Z"],
    ["Thu Mar 15 2018 10:49:39 GMT+0100 (CET)", "2018-03-15T09:49:39Z"],
    ["May 24, 2016", "2016-05-24"],
    ["24 September 2016", "2016-09-24"],
    ["May 24, 2016 8:49 PM", "2016-05-24"],
    ["25.11.2015", "2015-11-25"],
    ["11/25/2015", "2015-11-25"],
  ])("%s is %s", (text, date) => {
    expect(parseDate(text)).toBe(date);
  });

  it.each([
    "",
    "today",
    "0001-01-01T00:00:00",
    "2020-02-30",
    "2020-13-01",
    "04/05/2015",
    "2020-01-01T25:00",
    "12345",
    "9999999999",
    "2100-12-31T23:00-02:00",
  ])("%j is no date", (text) => {
    expect(parseDate(text)).toBeNull();
  });
});

describe("qualities", () => {
  it.each([
    ["720", 720],
    ["HD 720p", 720],
    ["hd720", 720],
    ["1080p60", 1080],
    ["1280x720", 720],
    ["MP4-720", 720],
    ["1080 (HD)", 1080],
    ["Otters, 480p", 480],
    ["4K", 2160],
  ])("%s is %d pixels high", (text, height) => {
    expect(parseQuality(text)).toBe(height);
  });

  it.each(["850 MB", "1500 kbps", "Wonder Woman 1984", "Otters 720", "h264", "x265", "12"])(
    "%s is no quality",
    (text) => {
      expect(parseQuality(text)).toBeNull();
    },
  );
});

describe("counts and lengths", () => {
  it.each([
    ["6241", 6241],
    ["1,234,567", 1_234_567],
    ["1.234.567", 1_234_567],
    ["1 234", 1234],
    ["0", 0],
  ])("%s is %d", (text, count) => {
    expect(parseCount(text)).toBe(count);
  });

  it.each(["", "1.2M", "12,34", "-5", "1,234.567", "many", "9".repeat(16)])("%j is no count", (text) => {
    expect(parseCount(text)).toBeNull();
  });

  it("pixels are whole and positive", () => {
    expect(["640", "640px", "640.0", "0", "100%", "undefined"].map(parsePixels)).toEqual([
      640,
      640,
      640,
      null,
      null,
      null,
    ]);
  });
});

describe("languages", () => {
  it.each([
    ["en", "en"],
    ["pt_br", "pt-BR"],
    ["zh-hant-tw", "zh-Hant-TW"],
    ["", null],
    ["{{lang}}", null],
    ["english language", null],
    ["X-Klingon", "x-klingon"],
    ["x-", null],
    ["en-", null],
  ])("%j is %j", (text, tag) => {
    expect(parseLanguage(text)).toBe(tag);
  });
});

describe("URLs", () => {
  const base = new URL("https://example.com/a/b?c");

  it.each([
    ["//cdn.example.com/1", "https://cdn.example.com/1"],
    ["../x y", "https://example.com/x%20y"],
    [" HTTP://EXAMPLE.COM ", "http://example.com/"],
    ["www.example.org/1", "https://www.example.org/1"],
    ["javascript:alert(1)", null],
    ["mailto:a@example.com", null],
    ["https://user@example.com/", null],
    ["https://", null],
    ["undefined", null],
    ["#", null],
    ["<iframe src=x>", null],
    [`https://example.com/${"a".repeat(9_000)}`, null],
  ])("%j is parsed as %j", (text, href) => {
    expect(tryParseUrl(text, base)?.href ?? null).toBe(href);
  });

  it("of the same page are recognised", () => {
    const same = (a: string, b: string) => isSamePage(new URL(a), new URL(b));
    expect(same("http://www.example.com/a/", "https://example.com/a#b")).toBe(true);
    expect(same("https://example.com/a?v=1", "https://example.com/a?v=2")).toBe(false);
  });

  it("of front pages are recognised", () => {
    const are = ["/", "/de/", "/en-us", "/index.php", "/de/index.html"].map((path) => new URL(path, base));
    const areNot = ["/video", "/?v=1", "/de/video"].map((path) => new URL(path, base));
    expect(are.every((url) => isFrontPage(url))).toBe(true);
    expect(areNot.some((url) => isFrontPage(url))).toBe(false);
  });

  it.each([
    ["/", null, true],
    ["/index.html", "de", true],
    ["/de/", "de-AT", true],
    ["/at", "de-AT", true],
    ["/us/", "en", true],
    ["/uk", "en-GB", true],
    ["/jp/index.html", "ja", true],
    ["/zh-cn", "zh-Hans", true],
    ["/tv", "en", false],
    ["/ab", null, false],
    ["/ab", "x-private", false],
    ["/de/", "fr", false],
    ["/de/video", "de", false],
  ])("%s of a page in the language %s: a front page: %j", (path, language, isFront) => {
    expect(isFrontPage(new URL(path, base), language)).toBe(isFront);
  });
});

describe("attributes", () => {
  it("are parsed as in HTML", () => {
    const source = ` A="1 &amp; 2" b='"' c=x/y&copy=1 d e = "f" a=later g=&lt;h/`;
    expect([...parseAttributes(source)]).toEqual([
      ["a", "1 & 2"],
      ["b", '"'],
      ["c", "x/y&copy=1"],
      ["d", ""],
      ["e", "f"],
      ["g", "<h/"],
    ]);
  });
});

describe("texts", () => {
  it("are trimmed, collapsed and cut between characters", () => {
    expect(parseLine("  a\n b\u00A0 ")).toBe("a b");
    expect(parseParagraphs(" a\nb ")).toBe("a\nb");
    expect(parseLine(" \n ")).toBeNull();
    const cut = parseLine(`${"a".repeat(1_999)}😀`) ?? "";
    expect(cut).toBe("a".repeat(1_999));
    expect(parseLine("a\uD800b")).toBe("a\uFFFDb");
    expect(parseLine("\u202Eab\u2066c\u200Fd\u061C \x1B[31me\x00\x9B")).toBe("abcd [31me");
    expect(parseParagraphs("\u202Ea\r\nb\tc\x07")).toBe("a\r\nb\tc");
    expect(parseLine("\u2069\u2066")).toBeNull();
  });
});
