import { describe, expect, it } from "vitest";
import { Timelines } from "../../src/remux/timelines.ts";

describe("timelines", () => {
  it("keep the first timeline where it is", () => {
    expect(new Timelines().offset(7, null, 90_000_000)).toBe(0);
  });

  it("let the first timeline begin at 0 if its times are since 1970", () => {
    const timelines = new Timelines();
    expect(timelines.offset(7, null, 1_600_000_000)).toBe(-1_600_000_000);
    expect(timelines.offset(7, null, 1_600_000_001)).toBe(-1_600_000_000);
  });

  it("put the next timeline where the latest sample of all tracks ended", () => {
    const timelines = new Timelines();
    timelines.offset(0, null, 5);
    timelines.reach(9);
    timelines.reach(8);
    expect(timelines.offset(1, null, 2)).toBe(7);
  });

  it("insert nothing before a timeline whose media times go on, although audio or video before it ended a little later", () => {
    const timelines = new Timelines();
    timelines.offset(0, 3, 5);
    timelines.reach(17.06);
    expect(timelines.offset(1, null, 14)).toBe(3);
    timelines.reach(25);
    // The same clock again.
    expect(timelines.offset(2, null, 14)).toBe(11);
    expect(timelines.offset(3, null, 14)).toBe(11);
  });

  it("return the same offset for later calls of a timeline", () => {
    const timelines = new Timelines();
    timelines.offset(0, null, 0);
    timelines.reach(10);
    expect(timelines.offset(1, null, 100)).toBe(-90);
    timelines.reach(12);
    expect(timelines.offset(1, null, 100.5)).toBe(-90);
  });

  it("put a timeline that several sources begin where none of them overlaps what it had before", () => {
    const timelines = new Timelines();
    timelines.offset(0, null, 0);
    timelines.reach(10);
    timelines.join(1, [
      { endS: 10, firstS: 3 },
      { endS: 9.9, firstS: 2.8 },
    ]);
    expect(timelines.offset(1, null, 3)).toBeCloseTo(7.1, 9);
    expect(timelines.offset(1, null, 2.8)).toBeCloseTo(7.1, 9);
  });

  it("put a timeline of one source where none of its tracks overlaps what it had before", () => {
    const timelines = new Timelines();
    timelines.offset(0, null, 0);
    timelines.reach(10);
    const tracks = [
      { endS: 10, firstS: 3 },
      { endS: 9.9, firstS: 2.8 },
      { endS: -Infinity, firstS: 2.5 },
    ];
    expect(timelines.offset(1, null, 2.5, tracks)).toBeCloseTo(7.1, 9);
  });

  it("put a timeline of one source where the latest sample ended if that is of another source", () => {
    const timelines = new Timelines();
    timelines.offset(0, null, 0);
    timelines.reach(10.5);
    const tracks = [
      { endS: 10, firstS: 3 },
      { endS: 9.9, firstS: 2.8 },
    ];
    expect(timelines.offset(1, null, 2.8, tracks)).toBeCloseTo(7.7, 9);
  });

  it("insert nothing before a timeline that several sources begin if its media times go on", () => {
    const timelines = new Timelines();
    timelines.offset(0, null, 0);
    timelines.reach(10.02);
    timelines.join(1, [
      { endS: 10, firstS: 10 },
      { endS: 10.02, firstS: 9.98 },
    ]);
    expect(timelines.offset(1, null, 10)).toBe(0);
  });

  it("insert nothing before a timeline that only one source begins, and whose media times go on", () => {
    const timelines = new Timelines();
    timelines.offset(0, null, 0);
    timelines.reach(12);
    timelines.keepOffset(1, { endS: 10, firstS: 10.04 });
    expect(timelines.offset(1, null, 10.04)).toBe(0);
    timelines.keepOffset(2, { endS: 11, firstS: 500 });
    expect(timelines.offset(2, null, 500)).toBe(-488);
  });

  it("use a stated offset, even if tracks of a timeline have different ones", () => {
    const timelines = new Timelines();
    expect(timelines.offset(0, 30, 4)).toBe(30);
    expect(timelines.offset(0, 29.5, 4)).toBe(29.5);
    expect(timelines.offset(0, null, 4)).toBe(30);
  });
});
