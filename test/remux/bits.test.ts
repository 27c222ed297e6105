import { expect, test } from "vitest";
import { withGapsAllowed } from "../../src/remux/nal/avc-numbers.ts";
import { createBitReader } from "../../src/remux/nal/bits.ts";

/** Writes an Exp-Golomb code (ITU-T H.264 §9.1). */
function codeOf(value: number): string {
  const digits = (value + 1).toString(2);
  return "0".repeat(digits.length - 1) + digits;
}

test.each([0, 1, 2, 254, 2 ** 16 - 1, 2 ** 30, 2 ** 31 - 2, 2 ** 31 - 1, 2 ** 32 - 2])(
  "an Exp-Golomb code of %d is read to its end",
  (value) => {
    const code = codeOf(value);
    const bits = code.padEnd(Math.ceil(code.length / 8) * 8, "1");
    const bytes = Uint8Array.from(bits.match(/.{8}/g)!, (byte) => Number.parseInt(byte, 2));
    const reader = createBitReader(bytes);
    expect(reader.readUnsigned()).toBe(value);
    expect(reader.position).toBe(code.length);
  },
);

test("a sequence parameter set that is longer than any stays as it is", () => {
  const start = Buffer.from("6742c01eda0280bfe5c0440000000000000000000000000000", "hex");
  const set = Buffer.concat([start, Buffer.alloc(0xffff - start.length, 0xff)]);
  const configuration = Buffer.concat([Buffer.from("0142c01effe1ffff", "hex"), set, Buffer.from([0])]);
  expect(withGapsAllowed(configuration)).toEqual(configuration);
});
