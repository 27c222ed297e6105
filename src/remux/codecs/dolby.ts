import { readAc3Frame } from "./ac3.ts";
import type { AudioSyntax } from "./audio-syntax.ts";
import { readEac3Frame } from "./eac3.ts";

/** AC-3 and E-AC-3 (ETSI TS 102 366), distinguished by bsid. */
export const dolby: AudioSyntax = {
  firstByte: 0x0b,
  headerLength: 8,
  frameAt(bytes, at, isLast) {
    if (at + 8 > bytes.length) return isLast ? null : "incomplete";
    if (bytes[at] !== 0x0b || bytes[at + 1] !== 0x77) return null;
    const bsid = (bytes[at + 5] ?? 0) >> 3;
    if (bsid > 16) return null;
    return bsid > 10 ? readEac3Frame(bytes, at, isLast) : readAc3Frame(bytes.subarray(at, at + 8));
  },
};
