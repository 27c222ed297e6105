import { describe, expect, it } from "vitest";
import { createTimelines } from "../../src/remux/timelines.ts";

describe("timelines", () => {
  it("leave the first one where it is", () => {
    expect(createTimelines().offset(7, null, 1_600_000_000)).toBe(0);
  });

  it("put the next one where the latest sample of all tracks ended", () => {
    const timelines = createTimelines();
    timelines.offset(0, null, 5);
    timelines.reach(9);
    timelines.reach(8);
    expect(timelines.offset(1, null, 2)).toBe(7);
  });

  it("give a timeline's later callers what its first one got", () => {
    const timelines = createTimelines();
    timelines.offset(0, null, 0);
    timelines.reach(10);
    expect(timelines.offset(1, null, 100)).toBe(-90);
    timelines.reach(12);
    expect(timelines.offset(1, null, 100.5)).toBe(-90);
  });

  it("take a stated offset as it is, also where tracks of a timeline have different ones", () => {
    const timelines = createTimelines();
    expect(timelines.offset(0, 30, 4)).toBe(30);
    expect(timelines.offset(0, 29.5, 4)).toBe(29.5);
    expect(timelines.offset(0, null, 4)).toBe(30);
  });
});
