import { describe, expect, it } from "vitest";
import { isShowable } from "../../src/remux/picture-size.ts";
import { png } from "./additions.ts";

/** The start of a JPEG with this size. */
const jpeg = (width: number, height: number, before: readonly number[] = [0xff, 0xe0, 0, 4, 1, 2]) =>
  Buffer.from([0xff, 0xd8, ...before, 0xff, 0xc2, 0, 17, 8, height >> 8, height & 255, width >> 8, width & 255, 3, 0]);
const pngOf = (width: number, height: number) => {
  const bytes = Buffer.from(png);
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
};

describe("a picture", () => {
  it.each([
    ["image/png", png],
    ["image/png", pngOf(8192, 8192)],
    ["image/jpeg", jpeg(1280, 720)],
    ["image/jpeg", jpeg(1280, 720, [0xff, 0xff, 0xe1, 0, 2])],
  ] as const)("of %s is taken if programs can show it", (mimeType, data) => {
    expect(isShowable({ mimeType, data })).toBe(true);
  });

  it.each([
    ["image/png", pngOf(60_000, 60_000)],
    ["image/png", pngOf(0, 10)],
    ["image/png", png.subarray(0, 20)],
    ["image/jpeg", jpeg(60_000, 60_000)],
    ["image/jpeg", jpeg(1, 1).subarray(0, 14)],
    ["image/jpeg", Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0xff, 0xff, 0, 0, 0, 0, 0, 0])],
    ["image/jpeg", Buffer.from("\xff\xd8\xff\xe0\0\0\0\0\0\0\0\0", "latin1")],
  ] as const)("of %s is left out if it is too large, or says no size", (mimeType, data) => {
    expect(isShowable({ mimeType, data })).toBe(false);
  });
});
