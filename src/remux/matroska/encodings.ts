import { inflateSync } from "node:zlib";
import type { ChosenTracks } from "./blocks.ts";
import { damagedMatroskaError, elementsIn, findElement, findUnsigned, ids, readBytes } from "./elements.ts";
import { framesIn, packFrames } from "./lacing.ts";
import type { MatroskaTrack } from "./tracks.ts";

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
