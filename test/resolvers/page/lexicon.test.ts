import { describe, expect, it } from "vitest";
import { createLexicon } from "../../../src/resolvers/page/lexicon/lexicon.ts";

const lexicon = createLexicon({
  play: { part: "play" },
  ad: { word: "ad" },
  title: { end: "title" },
  low: { name: "low" },
  roll: { part: "pre-roll" },
  hls: { part: "m3u8" },
  dash: { part: "dash", not: "dashboard" },
  url: { word: "url urls" },
});
type Role = Parameters<typeof lexicon.has>[1];

describe("a lexicon", () => {
  it.each<[name: string, role: Role, expected: boolean]>([
    ["autoplayer", "play", true],
    ["map_layer", "play", false],
    ["adTagURL", "ad", true],
    ["ads", "ad", false],
    ["loadAd2", "ad", true],
    ["subtitle", "title", true],
    ["titles", "title", false],
    ["LOW", "low", true],
    ["slow", "low", false],
    ["low_res", "low", false],
    ["preRoll", "roll", true],
    ["pre-roll-url", "roll", true],
    ["preroll", "roll", true],
    ["M3U8", "hls", true],
    ["hdM3u8Url", "hls", true],
    ["dashUrl", "dash", true],
    ["dashboardUrl", "dash", false],
    ["videoURLs", "url", true],
    ["HTTPUrl", "url", true],
    ["", "low", false],
    ["\u00fcber-ad", "ad", true],
  ])("%s has the role %s: %s", (name, role, expected) => {
    expect(lexicon.has(name, role)).toBe(expected);
  });

  it("returns the bits of all roles of a name", () => {
    expect(lexicon.rolesIn("playAdTitle")).toBe(lexicon.bitsOf("play", "ad", "title"));
  });

  it("takes linear time", () => {
    const start = performance.now();
    for (let i = 0; i < 1_000; i++) lexicon.rolesIn("play".repeat(100_000));
    expect(performance.now() - start).toBeLessThan(20_000);
  });
});
