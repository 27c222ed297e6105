import { readSync } from "node:fs";

/** Reads an open file through a window of 1 MiB; best from the start to the end. */
export interface FileWindow {
  /** Of the file, bytes. */
  readonly size: number;
  /** Returns the bytes from `position` on, at least 64 KiB or to the end; valid until the next call. */
  at(position: number): Buffer;
}

const windowBytes = 1 << 20;
const leastBytes = 64 << 10;

export function createFileWindow(fd: number, size: number): FileWindow {
  const buffer = Buffer.allocUnsafeSlow(Math.min(windowBytes, size));
  let start = 0;
  let length = 0;
  return {
    size,
    at(position) {
      const end = Math.min(position + leastBytes, size);
      if (position < start || end > start + length) {
        start = position;
        length = 0;
        for (let count = -1; count !== 0 && length < buffer.length; length += count) {
          count = readSync(fd, buffer, length, buffer.length - length, start + length);
        }
      }
      return buffer.subarray(Math.min(position - start, length), length);
    },
  };
}
