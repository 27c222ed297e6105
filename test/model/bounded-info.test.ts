import { describe, expect, it } from "vitest";
import { boundInfo } from "../../src/model/bounded-info.ts";
import type { PageInfo } from "../../src/model/page-info.ts";
import { formatOf } from "../formats.ts";
import { pageInfo } from "../page-info.ts";

const maxBytes = 128 * 1024;
const url = `https://example.com/${"u".repeat(1_000)}`;

function times<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n));
}

function sizeOf(info: PageInfo): number {
  return Buffer.byteLength(JSON.stringify(info));
}

const videos = times(1_000, (n) => formatOf(`v${n}`, { url, acodec: "none" }));
const audios = times(1_000, (n) => formatOf(`a${n}`, { url, vcodec: "none" }));

describe("a record of a page", () => {
  it("that is not too long stays as it is", () => {
    const info = pageInfo({ formats: videos.slice(0, 50) });
    expect(boundInfo(info, maxBytes)).toBe(info);
  });

  it("keeps the best formats with video and the best without in turn, in their order", () => {
    const { formats, truncated } = boundInfo(pageInfo({ formats: [...videos, ...audios] }), maxBytes);
    const kept = formats.length / 2;
    expect(kept).toBeGreaterThan(40);
    const ids = ["v", "a"].flatMap((kind) => times(Math.round(kept), (n) => `${kind}${n}`));
    expect(formats.map(({ format_id }) => format_id)).toEqual(ids);
    expect(truncated).toEqual({ formats: 2_000 - formats.length });
  });

  it("keeps the formats that were chosen, whatever their rank", () => {
    const info = boundInfo(pageInfo({ formats: [...videos, ...audios] }), maxBytes, () => ["v999", "a999"]);
    expect(info.formats.map(({ format_id }) => format_id)).toEqual(
      expect.arrayContaining(["v999", "a999", "v0", "a0"]),
    );
  });

  it.each<[string, Partial<PageInfo>]>([
    ["a description", { description: "\u0000".repeat(1_000_000) }],
    ["a title", { title: "\u{1F3AC}".repeat(1_000_000), site_name: "\u0000".repeat(1_000_000) }],
    ["thumbnails", { thumbnails: times(10_000, () => ({ url, width: 1, height: 1 })) }],
    ["tags", { tags: times(100_000, (n) => `tag ${n}`) }],
    ["subtitles", { subtitles: { en: times(5_000, () => ({ url, ext: "vtt", name: null })) } }],
    ["languages", { subtitles: Object.fromEntries(times(5_000, (n) => [`l${n}`, [{ url, ext: "vtt", name: null }]])) }],
    ["entries", { formats: [], entries: times(200, () => ({ url: url.repeat(8), title: url, duration: 1 })) }],
    ["one endless URL", { formats: [formatOf("x", { url: url.repeat(1_000) })], uploader_url: url.repeat(1_000) }],
    [
      "an endless canonical URL and player",
      { webpage_url: url.repeat(1_000), embed: { url: url.repeat(1_000), width: 1, height: 1 } },
    ],
  ])("has no more bytes than it may because of %s, and keeps its formats", (_what, fields) => {
    const info = pageInfo({ formats: [formatOf("best")], ...fields });
    const bounded = boundInfo(info, maxBytes);
    expect(sizeOf(bounded)).toBeLessThanOrEqual(maxBytes);
    const counts = Object.values(bounded.truncated ?? {});
    expect(counts).not.toEqual([]);
    expect(counts.every((count) => count > 0)).toBe(true);
    if (info.formats[0]?.format_id === "best") expect(bounded.formats).toEqual(info.formats);
  });

  it("cuts texts between characters", () => {
    const film = "\u{1F3AC}";
    const { title, description, truncated } = boundInfo(
      pageInfo({ title: `a${film.repeat(1_000)}`, description: film.repeat(100_000) }),
      maxBytes,
    );
    expect([title, title?.length, truncated?.["title"]]).toEqual([`a${film.repeat(499)}`, 999, 1_002]);
    expect(description?.isWellFormed()).toBe(true);
  });

  it("keeps the first of everything", () => {
    const info = pageInfo({
      formats: videos,
      description: "d".repeat(100_000),
      thumbnails: times(1_000, (n) => ({ url: `${url}${n}`, width: 1, height: 1 })),
      tags: times(10_000, (n) => `tag ${n}`),
      subtitles: { de: times(1_000, (n) => ({ url: `${url}${n}`, ext: "vtt", name: null })) },
      chapters: times(1_000, (n) => ({ start_time: n, end_time: n + 1, title: url })),
      automatic_captions: { en: times(1_000, (n) => ({ url: `${url}${n}`, ext: "vtt", name: null })) },
    });
    const bounded = boundInfo(info, maxBytes);
    expect(bounded.description).toMatch(/^d{1000}/);
    expect(bounded.thumbnails[0]).toEqual(info.thumbnails[0]);
    expect(bounded.tags.slice(0, 9)).toEqual(info.tags.slice(0, 9));
    expect(bounded.subtitles["de"]?.[0]).toEqual(info.subtitles["de"]?.[0]);
    expect(bounded.chapters?.[0]).toEqual(info.chapters?.[0]);
    expect(bounded.automatic_captions?.["en"]?.[0]).toEqual(info.automatic_captions?.["en"]?.[0]);
    expect(bounded.formats[0]).toEqual(info.formats[0]);
    expect(sizeOf(bounded)).toBeLessThanOrEqual(maxBytes);
    expect(Object.keys(bounded.truncated ?? {}).toSorted()).toEqual([
      "automatic_captions",
      "chapters",
      "description",
      "formats",
      "subtitles",
      "tags",
      "thumbnails",
    ]);
  });
});
