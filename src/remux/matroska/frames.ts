import { unlessUnreadable } from "../../model/errors.ts";
import { damagedMatroskaError, elementsIn, findElement, findUnsigned, ids, readBytes } from "./elements.ts";
import { inflateSync } from "node:zlib";
import type { ChosenTracks } from "./blocks.ts";
import type { MatroskaTrack } from "./tracks.ts";

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

type OpenTracks = Pick<ChosenTracks, "fd" | "source">;

const [zlib, withoutStart] = [0, 3];
/** ContentEncodingScope: the frames, and nothing else. */
const framesOnly = 1;

/**
 * Returns a function that undoes what a track says was done to its frames (RFC 9559 §5.1.4.1.31): zlib, or a start that all have
 * was removed.
 * @throws ServiceError `upstream_invalid`, here and later, if that is anything else, or they are damaged, or longer than `maxBytes` then.
 */
export function openEncodings(
  { fd, source }: OpenTracks,
  { entry }: Pick<MatroskaTrack, "entry">,
): (frame: Uint8Array, maxBytes: number) => Uint8Array {
  const encodings = findElement(source, entry, ids.encodings);
  const [encoding, further] = encodings === undefined ? [] : [...elementsIn(source, encodings)];
  if (encoding === undefined) return (frame) => frame;
  const isEncrypted = findElement(source, encoding, ids.encryption) !== undefined;
  const scope = findUnsigned(source, encoding, ids.encodingScope) ?? framesOnly;
  if (further !== undefined || isEncrypted || scope !== framesOnly) {
    throw damagedMatroskaError("a track is encrypted, or encoded several times or as a whole");
  }
  const algorithm = findUnsigned(source, encoding, ids.compression, ids.compressionAlgorithm) ?? zlib;
  const settings = findElement(source, encoding, ids.compression, ids.compressionSettings);
  const start = settings === undefined ? new Uint8Array() : readBytes(fd, settings);
  if (algorithm === withoutStart) return (frame, maxBytes) => prepend(start, frame, maxBytes);
  if (algorithm === zlib) return inflate;
  throw damagedMatroskaError(`a track is compressed with the algorithm ${algorithm}`);
}

function prepend(start: Uint8Array, frame: Uint8Array, maxBytes: number): Uint8Array {
  if (start.length + frame.length <= maxBytes) return Buffer.concat([start, frame]);
  throw damagedMatroskaError("frames are too long with the start that was removed");
}

function inflate(frame: Uint8Array, maxBytes: number): Uint8Array {
  try {
    return inflateSync(frame, { maxOutputLength: Math.max(1, maxBytes) });
  } catch {
    throw damagedMatroskaError("compressed frames are damaged, or too long");
  }
}

/** Of all frames of a block. */
const maxBlockBytes = 32 << 20;
/** Frames of media become hardly shorter when they are compressed. */
const maxGrowth = 4;
const alwaysBytes = 64 << 20;

/**
 * Returns what opens the tracks of a file: a function for each that does so with the frames of its blocks, which may be laced.
 * @throws ServiceError as `openEncodings`; later also if a block has over 32 MiB then, or all of them over four times as much as the file
 * and over 64 MiB.
 */
export function createUnpackers(file: OpenTracks) {
  let leftBytes = file.source.size * maxGrowth + alwaysBytes;
  return (track: MatroskaTrack) => {
    const undo = openEncodings(file, track);
    return (payload: Uint8Array, flags: number) => {
      let blockBytes = Math.min(maxBlockBytes, leftBytes);
      const frames = framesIn(payload, flags).map((packed) => {
        const frame = undo(packed, blockBytes);
        blockBytes -= frame.length;
        leftBytes -= frame.length;
        return frame;
      });
      if (leftBytes < 0) throw damagedMatroskaError("its compressed frames are longer than any media");
      return packFrames(frames, flags);
    };
  };
}
