import { describe, expect, it } from "vitest";
import type { Format } from "../../src/model/page-info.ts";
import { chooseAudio, warnOfMissing } from "../../src/runner/choice/choose-audio.ts";
import { chooseFormat } from "../../src/resolvers/choose-format.ts";
import { formatOf } from "../formats.ts";
import { pageOf } from "./resolver.ts";

const manifest = "https://a.test/index.mpd";
const of = (id: string, fields: Partial<Format>): Format =>
  formatOf(id, { manifest_url: manifest, protocol: "dash", ...fields });
const sound = (id: string, language: string, fields: Partial<Format> = {}) =>
  of(id, { vcodec: "none", acodec: "mp4a", ext: "m4a", language, ...fields });
const video = of("v", { vcodec: "avc1", acodec: "none", height: 720, ext: "mp4" });
const formats = [
  video,
  sound("en", "en", { tbr: 128, roles: ["main"] }),
  sound("en-low", "en", { tbr: 64, roles: ["main"] }),
  sound("en-ad", "en", { tbr: 128, roles: ["description"], preference: -2 }),
  sound("de", "de-DE", { tbr: 128, roles: ["dub"], preference: -1 }),
  sound("fr-webm", "fr", { tbr: 160, ext: "webm", roles: ["dub"], preference: -1 }),
  sound("fr", "fr", { tbr: 128, roles: ["dub"], preference: -1 }),
  formatOf("elsewhere", { vcodec: "none", acodec: "mp4a", language: "it" }),
];

function choose(
  audio_languages: string[] | undefined,
  listed: readonly Format[] = formats,
  options = {},
  found: string[] = [],
  offeredLanguages: string[] = [],
) {
  const page = pageOf(new URL("https://a.test/"), { formats: [...listed] });
  const asked = { ...options, ...(audio_languages && { audio_languages }) };
  const chosen = chooseAudio(page, chooseFormat(page, asked), asked);
  const warnings = warnOfMissing(chosen, { audioLanguages: found, offeredLanguages });
  const { format, audio, otherAudio, audioOnly, audioLanguages } = chosen.tracks;
  const ids = [format, ...(audio ? [audio] : []), ...otherAudio].map(({ format_id }) => format_id);
  return { ids, warnings: warnings.map(({ message }) => message), acodec: format.acodec, audioOnly, audioLanguages };
}

describe("the audio tracks of a task", () => {
  it.each([
    ["are the original if nothing is asked for", undefined, ["v", "en"]],
    ["are those that were asked for, the original first", ["fr", "original"], ["v", "en", "fr"]],
    ["are the original for its own language", ["en"], ["v", "en"]],
    ["are in the order of their languages", ["fr", "en", "de"], ["v", "fr", "en", "de"]],
    ["begin with the original if that is asked for as well", ["fr", "en", "original"], ["v", "en", "fr"]],
    ["leave the original out if it was not asked for", ["fr", "de"], ["v", "fr", "de"]],
    ["are of any region for a tag without one", ["DE"], ["v", "de"]],
    ["are of the language for a region that is not listed", ["fr-CA"], ["v", "fr"]],
    ["are all languages and versions", ["all"], ["v", "en", "de", "fr", "en-ad"]],
    ["are each there once", ["fr", "fr", "original", "en"], ["v", "en", "fr"]],
  ])("%s", (_, asked, ids) => {
    expect(choose(asked)).toMatchObject({ ids, warnings: [] });
  });

  it.each([
    [
      "have a warning if all are DRM protected",
      true,
      ["v"],
      ["all audio of the page is DRM protected, the file has none"],
    ],
    ["are those without DRM", false, ["v", "de"], []],
  ])("%s", (_, has_drm, ids, warnings) => {
    const listed = [video, sound("en", "en", { has_drm: true }), sound("de", "de", { has_drm })];
    expect(choose(undefined, listed)).toMatchObject({ ids, warnings });
  });

  it.each([
    ["description", "en", "us"],
    ["description", "en-US", "us"],
    ["description", "en-GB", "gb-other"],
    ["description", "de", "de-other"],
    ["commentary", "en", "us"],
  ] as const)("are the programme rather than a %s in just the language that was asked for: %s", (role, asked, id) => {
    const us = sound("us", "en-US", { audio_role: "original" });
    const others = ["en", "en-GB", "de"].map((tag) =>
      sound(`${tag.slice(-2).toLowerCase()}-other`, tag, { audio_role: role, preference: -2 }),
    );
    expect(choose([asked], [video, us, ...others])).toMatchObject({ ids: ["v", id], warnings: [] });
  });

  it("are the programme of another region rather than a description in just the language", () => {
    const british = sound("gb", "en-GB");
    const described = sound("described", "en", { roles: ["description"], preference: -2 });
    expect(choose(["en-US"], [video, described, british])).toMatchObject({ ids: ["v", "gb"], warnings: [] });
    expect(choose(["en-US"], [video, described]).ids).toEqual(["v", "described"]);
    expect(choose(["en-US"], [video, sound("de", "de"), british])).toMatchObject({
      ids: ["v", "de"],
      warnings: ['there is no audio in "en-US": page and media have de, en-GB'],
    });
  });

  it("are of the video's own audio group, if that has the language", () => {
    const low = { ...video, audio_group: "low" };
    const listed = [
      low,
      sound("high", "en", { audio_group: "high", tbr: 256 }),
      sound("low", "en", { audio_group: "low", tbr: 64 }),
      sound("french", "fr", { audio_group: "high" }),
    ];
    expect(choose(undefined, listed).ids).toEqual(["v", "low"]);
    expect(choose(["fr", "en"], listed).ids).toEqual(["v", "french", "low"]);
  });

  it("that are not there have no warning", () => {
    expect(choose(undefined, [video])).toMatchObject({ ids: ["v"], warnings: [] });
  });

  it("are in the order of their languages without video, too, but begin with what is beside video", () => {
    expect(choose(["fr", "en"], formats, { audio_only: true }).ids).toEqual(["fr", "en"]);
    const muxed = of("v", { vcodec: "avc1", acodec: "mp4a", height: 720, language: "en" });
    expect(choose(["fr", "en"], [muxed, ...formats.slice(3)]).ids).toEqual(["v", "fr"]);
  });

  it("that are not listed are named, and the original is there", () => {
    expect(choose(["it", "fr"])).toMatchObject({
      ids: ["v", "fr"],
      warnings: ['there is no audio in "it": page and media have en, de-DE, fr'],
    });
    expect(choose(["xx"]).ids).toEqual(["v", "en"]);
  });

  it("that are not listed on a page that lists none are named with those of the media, at most 20", () => {
    const muxed = [of("v", { vcodec: "avc1", acodec: "mp4a", height: 720 })];
    const warningsWith = (offered: string[]) => choose(["it"], muxed, {}, [], offered).warnings;
    const missing = 'there is no audio in "it"';
    expect(warningsWith([])).toEqual([`${missing}: neither the page nor the media name a language`]);
    expect(warningsWith(["en", "de"])).toEqual([`${missing}: page and media have en, de`]);
    const many = Array.from({ length: 25 }, (_, index) => `x-${index}-${"long".repeat(100)}`);
    const [message] = warningsWith(many);
    expect(message).toMatch(/x-19-\w+ and 5 more$/);
    expect(message!.length).toBeLessThan(1000);
  });

  it("that are not listed are looked for in the media, with what stands for tracks of any media", () => {
    expect(choose(["original", "it", "fr"]).audioLanguages).toEqual(["original", "it"]);
    expect(choose(["all"]).audioLanguages).toEqual(["all"]);
    expect(choose(["fr"]).audioLanguages).toEqual([]);
    expect(choose(undefined).audioLanguages).toEqual(["original"]);
    expect(choose(["it", "xx"], formats, {}, ["it"]).warnings).toEqual([
      'there is no audio in "xx": page and media have en, de-DE, fr',
    ]);
  });

  it("take the place of the audio that is in the video", () => {
    const muxed = [of("v", { vcodec: "avc1", acodec: "mp4a", height: 720, language: "en" }), ...formats.slice(4)];
    expect(choose(["de"], muxed)).toMatchObject({ ids: ["v", "de"], acodec: "none" });
    expect(choose(["original", "de"], muxed)).toMatchObject({ ids: ["v", "de"], acodec: "mp4a" });
    expect(choose(["en"], muxed)).toMatchObject({ ids: ["v"], acodec: "mp4a" });
  });

  it("are the file if only audio is wanted", () => {
    expect(choose(["fr", "de"], formats, { audio_only: true })).toMatchObject({ ids: ["fr", "de"], audioOnly: false });
    expect(choose(["all"], formats, { audio_only: true }).ids).toEqual(["en", "de", "fr", "en-ad"]);
  });

  it("are one for each name that tells them apart, in the best of its qualities", () => {
    const named = [
      video,
      sound("en-high", "en", { tbr: 256, name: "English" }),
      sound("talk-high", "en", { tbr: 256, name: "English, with jokes", preference: -1 }),
      sound("en-low", "en", { tbr: 64, name: "English" }),
      sound("talk-low", "en", { tbr: 64, name: "English, with jokes", preference: -1 }),
      sound("en-other", "en", { tbr: 512 }),
    ];
    expect(choose(["all"], named).ids).toEqual(["v", "en-high", "talk-high"]);
    expect(choose(undefined, named).ids).toEqual(["v", "en-high"]);
    expect(choose(["en"], named).ids).toEqual(["v", "en-high"]);
  });

  it("are at most 20", () => {
    const many = [video, ...Array.from({ length: 30 }, (_, i) => sound(`s${i}`, `x-${i}`))];
    expect(choose(["all"], many).ids).toHaveLength(1 + 20);
  });
});
