import { closeSync, fstatSync, openSync } from "node:fs";
import { completeFileBoxes, readFully } from "./file-boxes.ts";

/**
 * Returns whether the MP4 file at `path` is complete: its top-level boxes end where the file ends, and an
 * index (`moov`) and media data (`mdat`) are among them. If the file is not fragmented, stray bytes after
 * the last box are allowed, unless they start another `mdat` or `moof`. Reads only the boxes' headers.
 * @throws the file system's own errors.
 */
export function isCompleteMp4(path: string): boolean {
  const fd = openSync(path, "r");
  try {
    const { size } = fstatSync(fd);
    const { types, end } = readCompleteBoxes(fd, size);
    const hasAll = types.has("moov") && types.has("mdat");
    if (!hasAll || end === size) return hasAll;
    const stray = readFully(fd, Buffer.alloc(Math.min(8, size - end)), end).toString("latin1", 4);
    return !types.has("moof") && stray !== "mdat" && stray !== "moof";
  } finally {
    closeSync(fd);
  }
}

/** Returns the types of the boxes before the first that is cut off or none, and where they end. */
function readCompleteBoxes(fd: number, size: number): { types: Set<string>; end: number } {
  const types = new Set<string>();
  let end = 0;
  for (const found of completeFileBoxes(fd, size)) {
    types.add(found.type);
    ({ end } = found);
  }
  return { types, end };
}
