import { describe, expect, it } from "vitest";
import { isShowable } from "../../src/remux/cover-size.ts";
import { png } from "./additions.ts";

const endOfImage = [0xff, 0xd9];
/** A JPEG with this size, but for what is coded of it. */
const jpeg = (width: number, height: number, before: readonly number[] = [0xff, 0xe0, 0, 4, 1, 2]) => {
  const size = [height >> 8, height & 255, width >> 8, width & 255];
  const frame = [0xff, 0xc2, 0, 11, 8, ...size, 1, 1, 0x11, 0];
  return Buffer.from([0xff, 0xd8, ...before, ...frame, 0xff, 0xda, 1, 2, 3, ...endOfImage]);
};
/** The Exif of a camera, with a small picture of its own. */
const exif = [0xff, 0xe1, 0, 8, 0xff, 0xd8, 1, 2, ...endOfImage];
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
    ["image/jpeg", jpeg(1280, 720, exif)],
    ["image/jpeg", Buffer.concat([jpeg(1280, 720), Buffer.from("another picture of the camera")])],
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
    ["image/png", png.subarray(0, -12)],
    ["image/jpeg", jpeg(1280, 720).subarray(0, -1)],
    ["image/jpeg", jpeg(1280, 720, exif).subarray(0, -2)],
    ["image/jpeg", jpeg(1280, 720).subarray(0, 21)],
    [
      "image/jpeg",
      Buffer.concat([jpeg(1, 1).subarray(0, 8), Buffer.from([0xff, 0xc0, 0xff, 0xff, 8, 0, 1, 0, 1, 0xff, 0xd9])]),
    ],
  ] as const)("of %s is left out if it is too large, says no size, or is cut off", (mimeType, data) => {
    expect(isShowable({ mimeType, data })).toBe(false);
  });
});
