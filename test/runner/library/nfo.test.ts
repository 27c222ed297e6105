import { Parser } from "htmlparser2";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { createNfo } from "../../../src/runner/library/place-task.ts";
import { pageInfo } from "../../page-info.ts";
import { anyCharacter } from "../../any-character.ts";
import { seed } from "../../random.ts";

/** Elements of a `<movie>` in Kodi's documents that Jellyfin's list too. */
const documented = new Set(["title", "plot", "runtime", "premiered", "year", "studio", "tag", "uniqueid", "dateadded"]);

it("an NFO is a movie as Kodi and Jellyfin document it", () => {
  const info = pageInfo({
    title: "Cats & <Dogs>",
    description: 'Two\nlines, "quoted"',
    duration: 125,
    uploaded_at: "2026-01-02T03:04:05Z",
    uploader: "Ann",
    tags: ["a", "b"],
    video_id: "a1",
    extractor: "youtube",
  });
  expect(createNfo(info, "2026-02-03T04:05:06.789Z", "Cats S02E03"))
    .toBe(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<movie>
  <title>Cats &amp; &lt;Dogs&gt;</title>
  <plot>Two
lines, &quot;quoted&quot;</plot>
  <runtime>2</runtime>
  <premiered>2026-01-02</premiered>
  <year>2026</year>
  <studio>Ann</studio>
  <tag>a</tag>
  <tag>b</tag>
  <uniqueid type="youtube" default="true">a1</uniqueid>
  <dateadded>2026-02-03 04:05:06</dateadded>
</movie>
`);
});

it("an NFO is an episode if the page states its numbers and the file's name has them", () => {
  const episode = { title: "Dogs", series: "Pets", season_number: 2, episode_number: 3, uploaded_at: "2026-01-02" };
  const nfo = (info: Partial<typeof episode>, name: string) => createNfo(pageInfo(info), "2026-02-03T04:05:06Z", name);
  expect(nfo(episode, "Pets S02E03 Dogs")).toBe(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<episodedetails>
  <title>Dogs</title>
  <showtitle>Pets</showtitle>
  <season>2</season>
  <episode>3</episode>
  <aired>2026-01-02</aired>
  <year>2026</year>
  <dateadded>2026-02-03 04:05:06</dateadded>
</episodedetails>
`);
  const { series: _, ...others } = episode;
  for (const movie of [nfo(episode, "Dogs"), nfo(episode, "Pets S02E04"), nfo(others, "Pets S02E03")]) {
    expect(movie).toContain("<movie>");
  }
});

it("an NFO has nothing of what is unknown", () => {
  expect(createNfo(pageInfo(), "2026-02-03T04:05:06Z", "")).not.toMatch(/null|undefined|<(title|plot|uniqueid)/);
});

it("an NFO is well-formed XML 1.0 whatever the page says, and the title can be read back", () => {
  const text = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 60 }),
    fc.constantFrom("]]>", "<!--", "&#0;", "\u0000\uFFFE"),
  );
  fc.assert(
    fc.property(text, text, text, (title, description, video_id) => {
      const nfo = createNfo(pageInfo({ title, description, video_id }), "2026-02-03T04:05:06Z", "");
      expect(nfo).toMatch(/^[\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]*$/u);
      expect(nfo.replaceAll(/&(amp|lt|gt|quot);/g, "")).not.toContain("&");
      const [names, texts] = [new Set<string>(), new Map<string, string>()];
      let open = "";
      const parser = new Parser(
        {
          onopentagname: (name) => void names.add((open = name)),
          ontext: (data) => void texts.set(open, (texts.get(open) ?? "") + data),
          onclosetag: () => void (open = ""),
        },
        { xmlMode: true },
      );
      parser.end(nfo);
      expect([...names].filter((name) => name !== "movie" && !documented.has(name))).toEqual([]);
      const legal = title
        .toWellFormed()
        .replaceAll(/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, "");
      expect(texts.get("title") ?? "").toBe(legal.trim());
    }),
    { numRuns: 30, seed },
  );
});
