import { readSync } from "node:fs";
import { damaged, sizeAt, typeAt, viewOf } from "../boxes.ts";

/** A box of a file's top level; the numbers are byte positions in the file. */
export interface FileBox {
  type: string;
  start: number;
  end: number;
}

/** A day of fragments of one second, each of four boxes. */
const maxBoxes = 1 << 19;

/**
 * The top-level boxes of an open file of `size` bytes, in order.
 * @throws ServiceError `upstream_invalid` where one does not end within the file.
 */
export function* fileBoxes(fd: number, size: number): Generator<FileBox> {
  let count = 0;
  for (let at = 0; at < size;) {
    if (++count > maxBoxes) throw damaged(`it has more than ${maxBoxes} boxes on its top level`);
    const found = boxAt(fd, at, size);
    yield found;
    at = found.end;
  }
}

function boxAt(fd: number, start: number, fileSize: number): FileBox {
  const left = fileSize - start;
  const view = viewOf(readSpan(fd, start, start + Math.min(16, left)));
  if (left < 8) throw damaged(`the file ends with ${left} bytes that are no box`);
  const type = typeAt(view, 4);
  const stated = view.getUint32(0);
  if (stated === 1 && left < 16) throw damaged(`the box "${type}" is cut off in its size`);
  const size = stated === 1 ? sizeAt(view, 8) : stated === 0 ? left : stated;
  const least = stated === 1 ? 16 : 8;
  if (size < least || size > left) {
    throw damaged(`the box "${type}" says it has ${size} bytes where ${least} to ${left} can be`);
  }
  return { type, start, end: start + size };
}

/** @throws ServiceError `upstream_invalid` where the file ends before `end`. */
export function readSpan(fd: number, start: number, end: number): Buffer {
  const bytes = Buffer.allocUnsafe(end - start);
  for (let done = 0; done < bytes.length;) {
    const count = readSync(fd, bytes, done, bytes.length - done, start + done);
    if (count === 0) throw damaged(`the file ends at ${start + done}, before ${end}`);
    done += count;
  }
  return bytes;
}
