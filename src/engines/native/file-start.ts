import { closeSync, openSync, readSync } from "node:fs";

/** Fills `memory` from the beginning of the file at `path`; gives as much of it as the file has. */
export function readFileStart(path: string, memory: Buffer): Buffer {
  const file = openSync(path, "r");
  try {
    let length = 0;
    for (let count = -1; count !== 0 && length < memory.length; length += count) {
      count = readSync(file, memory, length, memory.length - length, length);
    }
    return memory.subarray(0, length);
  } finally {
    closeSync(file);
  }
}
