import { closeSync, fstatSync, openSync } from "node:fs";
import { ServiceError } from "../../../errors.ts";
import { fileBoxes } from "./mp4-file-boxes.ts";

/**
 * Whether the file at `path` is an MP4 that was not cut off: its top-level boxes end where the file ends,
 * and index (`moov`) and media data (`mdat`) are among them. Reads the boxes' headers alone.
 * @throws the file system's own errors.
 */
export function isWholeMp4(path: string): boolean {
  const fd = openSync(path, "r");
  try {
    const types = new Set<string>();
    for (const { type } of fileBoxes(fd, fstatSync(fd).size)) types.add(type);
    return types.has("moov") && types.has("mdat");
  } catch (error) {
    if (error instanceof ServiceError) return false;
    throw error;
  } finally {
    closeSync(fd);
  }
}
