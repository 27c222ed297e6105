import { closeSync, openSync, readSync } from "node:fs";

/** Fills `buffer` from the start of a file; returns the filled part, shorter if the file is. */
export function readFileStart(path: string, buffer: Buffer): Buffer {
  const file = openSync(path, "r");
  try {
    let length = 0;
    for (let count = -1; count !== 0 && length < buffer.length; length += count) {
      count = readSync(file, buffer, length, buffer.length - length, length);
    }
    return buffer.subarray(0, length);
  } finally {
    closeSync(file);
  }
}
