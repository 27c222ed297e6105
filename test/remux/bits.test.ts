import { expect, test } from "vitest";
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
