import { expect, it } from "vitest";
import { parseRetryAfter } from "../../src/net/upstream-error.ts";

const now = new Date("1994-11-06T08:49:07.250Z");

it.each([
  ["120", 120],
  ["0", 1],
  ["86401", 86_400],
  ["9".repeat(30), 86_400],
  ["Sun, 06 Nov 1994 08:49:37 GMT", 30],
  ["Sunday, 06-Nov-94 08:49:37 GMT", 30],
  ["Sun Nov  6 08:49:37 1994", 30],
  ["Sun, 06 Nov 1994 08:00:00 GMT", 1],
  ["Fri, 31 Dec 2100 23:59:59 GMT", 86_400],
  [undefined, undefined],
  ["", undefined],
  ["-1", undefined],
  ["1.5", undefined],
  ["soon", undefined],
  ["1994-11-06", undefined],
  ["Sun, 99 Nov 1994 08:49:37 GMT", undefined],
  [`Sun, ${"1 ".repeat(30)}`, undefined],
])("reads Retry-After: %j as %s seconds", (value, seconds) => {
  expect(parseRetryAfter(value, now)).toBe(seconds);
});
