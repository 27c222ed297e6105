import { closeSync, fstatSync, openSync } from "node:fs";
import { ServiceError } from "../../../errors.ts";
import { fileBoxes, readSpan } from "./file-boxes.ts";

/**
 * Whether the file at `path` is an MP4 that was not cut off: its top-level boxes end where the file ends,
 * and index (`moov`) and media data (`mdat`) are among them. Where these are all, stray bytes behind them
 * that begin no media do not matter. Reads the boxes' headers alone.
 * @throws the file system's own errors.
 */
export function isCompleteMp4(path: string): boolean {
  const fd = openSync(path, "r");
  try {
    const { size } = fstatSync(fd);
    const { types, end } = wholeBoxes(fd, size);
    const hasAll = types.has("moov") && types.has("mdat");
    if (!hasAll || end === size) return hasAll;
    const stray = readSpan(fd, end, Math.min(end + 8, size)).toString("latin1", 4);
    return !types.has("moof") && stray !== "mdat" && stray !== "moof";
  } finally {
    closeSync(fd);
  }
}

/** The boxes up to the first that is none or is cut off, and where the last of them ends. */
function wholeBoxes(fd: number, size: number): { types: Set<string>; end: number } {
  const types = new Set<string>();
  let end = 0;
  try {
    for (const found of fileBoxes(fd, size)) {
      types.add(found.type);
      ({ end } = found);
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
  return { types, end };
}
