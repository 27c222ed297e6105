import { describe, expect, it } from "vitest";
import { cutTimes } from "../../src/remux/additions.ts";

const chapter = (startS: number, endS: number, title: string) => ({ startS, endS, title });
const part = (startS: number, endS: number) => ({ startS, endS });

describe("the chapters and cues of what is cut out of media", () => {
  it("are cut and moved along", () => {
    const chapters = [chapter(0, 10, "One"), chapter(10, 20, "Two"), chapter(20, 30, "Three")];
    expect(cutTimes(chapters, [part(5, 12), part(25, 28)])).toEqual([
      chapter(0, 5, "One"),
      chapter(5, 7, "Two"),
      chapter(7, 10, "Three"),
    ]);
    expect(cutTimes(chapters, [])).toEqual([]);
  });

  it("go on where something in their middle is left out", () => {
    const items = [chapter(0, 100, "One"), chapter(1, 5, "cue")];
    const kept = [part(0.1, 3.3), part(4.7, 10), part(20, Infinity)];
    const [one, cue, ...others] = cutTimes(items, kept);
    expect(others).toEqual([]);
    expect(one).toEqual(chapter(0, expect.closeTo(88.5, 6) as number, "One"));
    expect(cue).toEqual(chapter(expect.closeTo(0.9, 6) as number, expect.closeTo(3.5, 6) as number, "cue"));
  });

  it("stay two if they are two, or if others lie between their parts", () => {
    const same = [chapter(0, 5, "No!"), chapter(5, 10, "No!")];
    expect(cutTimes(same, [part(0, 10)])).toEqual(same);
    expect(cutTimes(same, [part(0, 4), part(6, 10)])).toEqual([chapter(0, 4, "No!"), chapter(4, 8, "No!")]);
    const song = [chapter(0, 3, "Refrain"), chapter(3, 6, "Verse"), chapter(6, 9, "Refrain")];
    expect(cutTimes(song, [part(1, 4), part(5, 8)])).toEqual([
      chapter(0, 2, "Refrain"),
      chapter(2, 4, "Verse"),
      chapter(4, 6, "Refrain"),
    ]);
  });
});
