import { unlessUnreadable } from "../../model/errors.ts";
import { damagedMatroskaError } from "./elements.ts";

const [xiph, fixed, ebml] = [1, 2, 3];

/** Whether the flags of a block say that it has several frames (RFC 9559 §10.3). */
export const isLaced = (flags: number): boolean => (flags & 0x06) !== 0;

/** Returns the payload and flags of a block with these frames, which had these flags. */
export function packFrames(frames: readonly Uint8Array[], flags: number): { payload: Uint8Array; flags: number } {
  if (!isLaced(flags)) return { payload: frames[0]!, flags };
  const sizes = frames
    .slice(0, -1)
    .flatMap(({ length }) => [...Array.from({ length: Math.floor(length / 255) }, () => 255), length % 255]);
  return {
    payload: Buffer.concat([Uint8Array.of(frames.length - 1, ...sizes), ...frames]),
    flags: (flags & ~6) | (xiph << 1),
  };
}

/**
 * Returns the frames of a block, which its flags may say to be laced (RFC 9559 §10.3).
 *
 * @param payload The frames, with the sizes of a lace.
 * @throws ServiceError `upstream_invalid` if the sizes do not fit.
 */
export function framesIn(payload: Uint8Array, flags: number): Uint8Array[] {
  const lacing = (flags >> 1) & 3;
  if (lacing === 0) return [payload];
  const count = (payload[0] ?? 0) + 1;
  const { sizes, at } = lacing === fixed ? fixedSizes(payload, count) : readSizes(payload, count, lacing);
  const frames: Uint8Array[] = [];
  let start = at;
  for (const size of [...sizes, payload.length - at - sizes.reduce((sum, each) => sum + each, 0)]) {
    if (size < 0 || start + size > payload.length) throw damagedMatroskaError("the sizes of a lace do not fit");
    frames.push(payload.subarray(start, start + size));
    start += size;
  }
  return frames;
}

/**
 * Returns the frames of a block, as `framesIn`.
 * @throws ServiceError `upstream_invalid` if the sizes of a lace do not fit, or its first one is missing: players end there, also
 * if it is the only one.
 */
export function checkLace(payload: Uint8Array, flags: number): Uint8Array[] {
  const frames = framesIn(payload, flags);
  if (frames.length === 1 && ((flags >> 1) & 3) === ebml) throw damagedMatroskaError("a lace has no sizes");
  return frames;
}

/** Whether a block has a lace in which players do not find all frames, as for `checkLace`; `read` returns its payload. */
export function hasDamagedLace(flags: number, read: () => Uint8Array): boolean {
  return isLaced(flags) && unlessUnreadable(() => checkLace(read(), flags)) === undefined;
}

interface Sizes {
  /** Of all frames but the last. */
  sizes: number[];
  /** Where the first frame starts. */
  at: number;
}

function fixedSizes(payload: Uint8Array, count: number): Sizes {
  const size = (payload.length - 1) / count;
  if (!Number.isInteger(size)) throw damagedMatroskaError("the sizes of a lace do not fit");
  return { sizes: Array.from({ length: count - 1 }, () => size), at: 1 };
}

function readSizes(payload: Uint8Array, count: number, lacing: number): Sizes {
  const sizes: number[] = [];
  let at = 1;
  while (sizes.length < count - 1) {
    if (at >= payload.length) throw damagedMatroskaError("the sizes of a lace do not fit");
    const before = sizes.at(-1);
    const read = lacing === xiph ? readXiph(payload, at) : readEbml(payload, at);
    // After the first one, EBML lacing has differences around the middle of what fits.
    const isDifference = lacing === ebml && before !== undefined;
    sizes.push(isDifference ? before + read.value - (2 ** (7 * read.length - 1) - 1) : read.value);
    at += read.length;
  }
  return { sizes, at };
}

function readXiph(payload: Uint8Array, at: number) {
  let value = 0;
  let length = 0;
  for (; at + length < payload.length; length++) {
    const byte = payload[at + length]!;
    value += byte;
    if (byte < 255) break;
  }
  return { value, length: length + 1 };
}

function readEbml(payload: Uint8Array, at: number) {
  const first = payload[at]!;
  const length = Math.clz32(first) - 23;
  let value = first & (0xff >> length);
  for (let i = 1; i < length; i++) value = value * 256 + (payload[at + i] ?? 0);
  return { value, length };
}
