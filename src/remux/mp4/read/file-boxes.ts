import { readSync } from "node:fs";
import { ServiceError } from "../../../model/errors.ts";
import { type Box, damagedError, readBoxHeader, viewOf } from "../boxes.ts";

/** A day of one-second fragments of four boxes each is 345,600. */
const maxBoxes = 1 << 19;

/**
 * Yields the top-level boxes of an open file of `size` bytes, in order. Reads only their headers.
 * @throws ServiceError `upstream_invalid` if a box does not end within the file, or beyond 2^19 boxes.
 */
export function* fileBoxes(fd: number, size: number): Generator<Box> {
  let count = 0;
  for (let start = 0; start < size;) {
    if (++count > maxBoxes) throw damagedError(`it has over ${maxBoxes} boxes on its top level`);
    const left = size - start;
    const header = readFully(fd, Buffer.allocUnsafe(Math.min(16, left)), start);
    const box = readBoxHeader(viewOf(header), 0, left);
    const end = start + box.size;
    yield { type: box.type, start, body: start + box.headerBytes, end };
    start = end;
  }
}

/** Like `fileBoxes`, but ends before the first box that is cut off or none. */
export function* completeFileBoxes(fd: number, size: number): Generator<Box> {
  try {
    yield* fileBoxes(fd, size);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
}

/**
 * Fills `into` with the bytes at `position` of an open file and returns it.
 * @throws ServiceError `upstream_invalid` if the file ends before.
 */
export function readFully(fd: number, into: Buffer, position: number): Buffer {
  for (let done = 0; done < into.length;) {
    const count = readSync(fd, into, done, into.length - done, position + done);
    if (count === 0) {
      throw damagedError(`the file ends at ${position + done}, before ${position + into.length}`);
    }
    done += count;
  }
  return into;
}
