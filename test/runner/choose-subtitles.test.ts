import { describe, expect, it } from "vitest";
import type { OwnSubtitles } from "../../src/engines/engine.ts";
import type { Subtitle } from "../../src/model/entry.ts";
import type { PageInfo } from "../../src/model/page-info.ts";
import type { TaskOptions } from "../../src/model/task.ts";
import { chooseSubtitles, warnOfMissingSubtitles } from "../../src/runner/choice/choose-subtitles.ts";
import { pageOf } from "./resolver.ts";

const at = (name: string, ext = "vtt", fields: Partial<Subtitle> = {}): Subtitle => {
  return { url: `https://a.test/${name}`, ext, name: null, ...fields };
};
const page = pageOf(new URL("https://a.test/"), {
  subtitles: {
    en: [at("en.json3", "json3"), at("en.srt", "srt"), at("en.vtt"), at("en-forced.vtt", "vtt", { role: "forced" })],
    "pt-BR": [at("pt.ttml", "ttml", { name: "Português" })],
    odd: [at("odd.sub", "sub")],
  },
  automatic_captions: { en: [at("auto-en.vtt")], fr: [at("auto-fr.vtt")] },
});
const warn = (of: PageInfo, options: TaskOptions, ownSubtitles: readonly OwnSubtitles[] = []) =>
  warnOfMissingSubtitles(chooseSubtitles(of, options), options, { ownSubtitles });
const choose = (subtitles: NonNullable<TaskOptions["subtitles"]>) => {
  const { wanted } = chooseSubtitles(page, { subtitles });
  const warnings = warn(page, { subtitles });
  const listed = wanted.map(({ language, role, automatic, listings }) => {
    return `${language} ${role}${automatic ? " automatic" : ""}: ${listings.map(({ url }) => url.slice(15)).join(" ")}`;
  });
  return { listed, warnings: warnings.map(({ message }) => message) };
};
const en = ["en subtitles: en.vtt en.srt", "en forced: en-forced.vtt"];
const pt = ["pt-BR subtitles: pt.ttml"];
/** Its content may be of another kind than its name says; if not, the file gets a warning. */
const odd = ["odd subtitles: odd.sub"];

describe("the subtitles of a task", () => {
  it.each([
    ["all that people wrote", true, [...en, ...pt, ...odd]],
    ["none", false, []],
    ["those of a language, of each role, the format that loses least first", { languages: ["EN"] }, en],
    ["any region of a language", { languages: ["pt"] }, pt],
    ["the language of a region that is not listed", { languages: ["en-GB", "en"] }, en],
    [
      "no automatic ones where people wrote some",
      { languages: ["en", "fr"], automatic: true },
      [...en, "fr subtitles automatic: auto-fr.vtt"],
    ],
    [
      "everything",
      { languages: "all", automatic: true },
      [...en, ...pt, ...odd, "fr subtitles automatic: auto-fr.vtt"],
    ],
  ] as const)("are %s", (_, subtitles, expected) => {
    expect(choose(subtitles as NonNullable<TaskOptions["subtitles"]>)).toEqual({ listed: expected, warnings: [] });
  });

  it.each([
    ["zh-TW", "zh-Hant"],
    ["zh-Hans", "zh-CN"],
    ["zh-HK", null],
    ["zh-Hant-TW", "zh-Hant"],
    ["sr-RS", null],
    ["sr", "sr-Latn"],
    ["de-AT", null],
    ["pt-PT", "pt"],
    ["pt-AO-1990", "pt-AO"],
    ["en-US", null],
    ["und", "und"],
  ])("are found by script or region: %s as %s", (asked, expected) => {
    const listed = ["zh-CN", "zh-Hant", "sr-Latn", "de-DE", "pt", "pt-AO", "und"];
    const subtitles = Object.fromEntries(listed.map((tag) => [tag, [at(`${tag}.vtt`)]]));
    const { wanted } = chooseSubtitles({ ...page, subtitles }, { subtitles: { languages: [asked] } });
    expect(wanted.map(({ listings }) => listings[0]?.url.slice(15))).toEqual(
      expected === null ? [] : [`${expected}.vtt`],
    );
  });

  it("have automatic ones of the language in reserve if these are allowed, unless they are forced ones", () => {
    const reserves = (automatic: boolean) =>
      chooseSubtitles(page, { subtitles: { languages: ["en", "pt", "fr"], automatic } }).wanted.map(
        ({ language, role, otherwise }) => `${language} ${role} ${otherwise?.[0]?.listings[0]?.url}`,
      );
    expect(reserves(true)).toEqual([
      "en subtitles https://a.test/auto-en.vtt",
      "en forced undefined",
      "pt-BR subtitles undefined",
      "fr subtitles undefined",
    ]);
    expect(reserves(false)).toEqual(["en subtitles undefined", "en forced undefined", "pt-BR subtitles undefined"]);
  });

  it("are besides forced ones also those of a region, or automatic ones", () => {
    const forced = (name: string) => at(name, "vtt", { role: "forced" });
    const partly = pageOf(new URL("https://a.test/"), {
      subtitles: { en: [forced("en.vtt")], "en-GB": [at("gb.vtt"), forced("gb-forced.vtt")], fr: [forced("fr.vtt")] },
      automatic_captions: { en: [at("auto-en.vtt")], fr: [at("auto-fr.vtt")] },
    });
    const names = (languages: string[] | "all", automatic: boolean) =>
      chooseSubtitles(partly, { subtitles: { languages, automatic } }).wanted.map(({ listings }) =>
        listings[0]!.url.slice(15),
      );
    expect(names(["fr"], true)).toEqual(["fr.vtt", "auto-fr.vtt"]);
    expect(names(["fr"], false)).toEqual(["fr.vtt"]);
    expect(names(["en"], true)).toEqual(["en.vtt", "gb.vtt", "gb-forced.vtt"]);
    expect(names("all", true)).toEqual(["en.vtt", "gb.vtt", "gb-forced.vtt", "fr.vtt", "auto-fr.vtt"]);
  });

  const versions = (...listed: Subtitle[]) =>
    chooseSubtitles(pageOf(new URL("https://a.test/"), { subtitles: { en: listed } }), { subtitles: true }).wanted.map(
      ({ name, role, listings }) => `${name} ${role}: ${listings.map(({ url }) => url.slice(15)).join(" ")}`,
    );
  const named = (name: string | null, path: string, ext = "vtt", fields: Partial<Subtitle> = {}) =>
    at(path, ext, { name, ...fields });

  it("are several of one language and role if only their names tell them apart", () => {
    expect(
      versions(
        named("Script", "1.ttml", "ttml"),
        named("English", "1.m3u8", "m3u8"),
        named("English: commentary", "2.m3u8", "m3u8"),
        named("English: commentary", "2.vtt"),
        named(null, "1.srt", "srt"),
        named("English", "mirror/1.m3u8", "m3u8"),
        named("English", "cc.m3u8", "m3u8", { role: "captions" }),
      ),
    ).toEqual([
      "English subtitles: 1.m3u8 mirror/1.m3u8 1.ttml 1.srt",
      "English: commentary subtitles: 2.vtt 2.m3u8",
      "English captions: cc.m3u8",
    ]);
  });

  it("are one if their names tell formats apart, or some have none", () => {
    expect(versions(named("SubRip", "en.srt", "srt"), named("WebVTT", "en.vtt"), named(null, "other.vtt"))).toEqual([
      "SubRip subtitles: en.vtt other.vtt en.srt",
    ]);
  });

  it("that are not listed are named, with those that are", () => {
    expect(choose({ languages: ["fr", "e"] }).warnings).toEqual([
      'the page lists no subtitles in "fr"; it lists en, pt-BR, odd',
      'the page lists no subtitles in "e"; it lists en, pt-BR, odd',
    ]);
    const warnings = warn(pageOf(new URL("https://a.test/")), { subtitles: { languages: ["de"] } });
    expect(warnings[0]?.message).toBe('the page lists no subtitles in "de", and no others');
  });

  it("that are not listed are not named if the media have their text", () => {
    const own = [
      { language: "fr-CA", codec: "SubRip", isText: true },
      { language: "de", codec: "PGS pictures", isText: false },
    ];
    const messages = warn(page, { subtitles: { languages: ["fr", "de"] } }, own).map(({ message }) => message);
    expect(messages).toEqual([
      'the page lists no subtitles in "de"; it lists en, pt-BR, odd, fr-CA',
      "the media have subtitles of their own in de (PGS pictures), which cannot be read: only a file as published has them",
    ]);
  });

  it.each<[string, TaskOptions["subtitles"], string | null]>([
    ["all", true, "de (PGS pictures), an unknown language (VobSub pictures)"],
    ["one that the page lists", { languages: ["en"] }, "an unknown language (VobSub pictures)"],
    ["one that is no text", { languages: ["de-AT", "en"] }, "de (PGS pictures), an unknown language (VobSub pictures)"],
    ["none", false, null],
    ["none, without saying so", undefined, null],
  ])(
    "within the media are named if they were asked for, are no text and the page does not list them: %s",
    (_, subtitles, tracks) => {
      const ownSubtitles = [
        { language: "en", codec: "PGS pictures", isText: false },
        { language: "fr", codec: "SubRip", isText: true },
        { language: "fr", codec: "PGS pictures", isText: false },
        { language: "de", codec: "PGS pictures", isText: false },
        { language: null, codec: "VobSub pictures", isText: false },
      ];
      const options = subtitles === undefined ? {} : { subtitles };
      const warnings = warn(page, options, ownSubtitles);
      const message = `the media have subtitles of their own in ${tracks}, which cannot be read: only a file as published has them`;
      expect(warnings.filter((each) => each.message.startsWith("the media"))).toEqual(
        tracks === null ? [] : [{ code: "subtitles_missing", message }],
      );
    },
  );

  it("are at most 60", () => {
    const subtitles = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`x-${i}`, [at(`${i}.vtt`)]]));
    const many = pageOf(new URL("https://a.test/"), { subtitles });
    const { wanted } = chooseSubtitles(many, { subtitles: true });
    const warnings = warn(many, { subtitles: true });
    expect([wanted.length, warnings[0]?.message]).toEqual([
      60,
      "40 further subtitles are left out: a task has at most 60",
    ]);
  });
});
