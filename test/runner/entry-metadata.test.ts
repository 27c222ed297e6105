import { describe, expect, it } from "vitest";
import type { Entry } from "../../src/model/entry.ts";
import { metadataOf, withEntryMetadata } from "../../src/runner/choice/entries.ts";
import { pageOf } from "./resolver.ts";

const chapters = [{ start_time: 0, end_time: null, title: "One" }];
const subtitles = { en: [{ url: "https://a.test/1.vtt", ext: "vtt", name: null }] };
const entry: Entry = { url: "https://a.test/1.mp3", title: "Episode", duration: null, chapters, subtitles };
const page = pageOf(new URL(entry.url), { title: "1", sources: { title: "media" }, subtitles: {} });

describe("what a playlist says of an entry", () => {
  it("is what its page does not say: chapters and transcripts of an episode too", () => {
    const found = withEntryMetadata(page, metadataOf(entry));
    expect(found).toMatchObject({ title: "Episode", chapters, subtitles });
    expect(found.sources).toMatchObject({ title: "playlist", chapters: "playlist", subtitles: "playlist" });
  });

  it("gives way to what its page says, and adds nothing that it does not say", () => {
    const own = { chapters: [{ ...chapters[0]!, title: "Own" }], subtitles: { de: subtitles.en } };
    expect(withEntryMetadata({ ...page, ...own }, metadataOf(entry))).toMatchObject(own);
    const { chapters: _, subtitles: __, ...plain } = entry;
    expect(withEntryMetadata(page, metadataOf(plain)).chapters).toBeUndefined();
    expect(withEntryMetadata(page)).toEqual(page);
  });

  it("names a file of chapters whose URL is not too long", () => {
    const named = (chapters_url: string) => metadataOf({ ...entry, chapters_url })?.chapters_url;
    expect(named("https://a.test/1.json")).toBe("https://a.test/1.json");
    expect(named(`https://a.test/${"1".repeat(10_000)}`)).toBeUndefined();
  });
});
