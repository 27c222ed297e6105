import { inflateSync } from "node:zlib";
import { readBytes } from "../../remux/matroska/copy.ts";
import { elementsIn, findElement, ids, unsignedIn } from "../../remux/matroska/elements.ts";
import type { MatroskaTrack } from "../../remux/matroska/tracks.ts";
import type { NumberSource } from "../../remux/mp4/read/number-source.ts";
import type { OpenFile } from "../../remux/open-file.ts";
import { invalidSubtitlesError, maxSubtitleBytes } from "../text.ts";

const [zlib, withoutHeader] = [0, 3];
/** What data of zlib begin with (RFC 1950 §2.2): no settings of WebVTT do. */
const zlibHead = 0x78;

/**
 * Returns a function that undoes what a track says was done to its blocks (RFC 9559 §5.1.4.1.31): zlib, or a start that all have
 * was removed.
 *
 * @throws ServiceError `upstream_invalid`, here and later, if that is anything else, or they are damaged
 */
export function openContent(
  { fd }: OpenFile,
  source: NumberSource,
  { entry }: MatroskaTrack,
): (bytes: Uint8Array) => Uint8Array {
  const encodings = findElement(source, entry, ids.encodings);
  const [encoding, further] = encodings === undefined ? [] : [...elementsIn(source, encodings)];
  if (encoding === undefined) return (bytes) => bytes;
  const isEncrypted = findElement(source, encoding, ids.encryption) !== undefined;
  if (further !== undefined || isEncrypted) throw invalidSubtitlesError("they are encrypted, or encoded several times");
  const algorithm = findElement(source, encoding, ids.compression, ids.compressionAlgorithm);
  const value = algorithm === undefined ? zlib : unsignedIn(source, algorithm);
  const settings = findElement(source, encoding, ids.compression, ids.compressionSettings);
  const start = settings === undefined ? new Uint8Array() : readBytes(fd, settings);
  if (value === withoutHeader) return (bytes) => Buffer.concat([start, bytes]);
  // Some writers compress blocks, but not what they add to them.
  if (value === zlib) return (bytes) => (bytes[0] === zlibHead ? inflate(bytes) : bytes);
  throw invalidSubtitlesError(`they are compressed with the algorithm ${value}`);
}

function inflate(bytes: Uint8Array): Uint8Array {
  try {
    return inflateSync(bytes, { maxOutputLength: maxSubtitleBytes });
  } catch {
    throw invalidSubtitlesError("their compressed text is damaged, or too long");
  }
}
