import { describe, expect, it } from "vitest";
import { createAudioChoice } from "../../src/remux/audio-choice.ts";

const indexes = (asked: readonly string[], languages: readonly (string | null)[]) =>
  createAudioChoice(asked)
    .choose(languages)
    .map(({ index }) => index);

describe("the audio tracks that are read of a stream", () => {
  it.each([
    ["are the first if nothing is asked for", [], [0]],
    ["are in the order in which they are asked for, each once", ["fr", "FR", "de"], [2, 1]],
    ["are the original first", ["fr", "original"], [0, 2]],
    ["are all of them", ["all"], [0, 1, 2, 3]],
    ["are in a language whatever its region", ["de-CH"], [1]],
    ["are in a language by any code of it", ["fra", "ger"], [2, 1]],
    ["are the first if none is in the language", ["it"], [0]],
  ])("%s", (_, asked, expected) => {
    expect(indexes(asked, ["en", "de", "fr-FR", null])).toEqual(expected);
  });

  it("are at most 20, and none of a stream without audio", () => {
    expect(
      indexes(
        ["all"],
        Array.from({ length: 30 }, () => null),
      ),
    ).toHaveLength(20);
    expect(indexes(["original", "all", "de"], [])).toEqual([]);
  });

  it("keep their places in the file when another one is no longer there", () => {
    const choice = createAudioChoice(["original", "de", "fr"]);
    const slots = (languages: string[]) =>
      new Map(choice.choose(languages).map(({ index, slot }) => [languages[index], slot]));
    const [before, after] = [slots(["en", "de", "fr"]), slots(["en", "fr"])];
    expect(after.get("fr")).toBe(before.get("fr"));
    expect(new Set(before.values()).size).toBe(3);
  });

  it("tell which languages were found", () => {
    const choice = createAudioChoice(["original", "de", "it"]);
    choice.choose(["en", "de-AT"]);
    expect([...choice.found]).toEqual(["de"]);
  });
});
