import * as fc from "fast-check";

/** Any character of Unicode. `unit: "binary"` of fast-check is the same, but first computes for a second in each process. */
export const anyCharacter: fc.Arbitrary<string> = fc
  .integer({ min: 0, max: 0x10f7ff })
  .map((n) => String.fromCodePoint(n < 0xd800 ? n : n + 0x800));
