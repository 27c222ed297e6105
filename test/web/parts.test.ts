import { expect, it } from "vitest";
import { parseRanges } from "../../src/web/find/part-times.ts";
import { describeOptions } from "../../src/web/tasks/task-texts.ts";

it.each([
  ["", undefined],
  ["  ", undefined],
  ["1:20-2:45", [{ start: 80, end: 165 }]],
  ["90 – 1:02:03.5", [{ start: 90, end: 3723.5 }]],
  ["-10", [{ start: 0, end: 10 }]],
  ["1-2, 2-3,4-", [1, 2, 4].map((start) => ({ start, end: start === 4 ? null : start + 1 }))],
  ["1:20", null],
  ["-", null],
  ["2-1", null],
  ["1-1", null],
  ["1-, 2-3", null],
  ["1-3, 2-4", null],
  ["1:2:3:4-", null],
  ["a-b", null],
  ["1..2-3", null],
  ["1-2,", null],
])("reads the parts %j", (text, ranges) => {
  expect(parseRanges(text)).toEqual(ranges);
});

it.each(["0:00.5–0:01.25", "1:19.999–", "59:59–1:02:03.04, 1:02:04–"])(
  "shows the parts of a task as they are: %j",
  (text) => {
    const ranges = parseRanges(text)!;
    expect(describeOptions({ ranges })).toBe(`best format, ${text}`);
  },
);
