import type { FileHandle } from "node:fs/promises";
import { StreamTarget, type StreamTargetChunk, type Target } from "mediabunny";
import { writeAll } from "../parts/write-all.ts";

/**
 * Lets mediabunny write into `file`; the caller closes it. mediabunny's FilePathTarget leaves the file open
 * after a failure, and treats a short write as a complete one.
 */
export function createFileTarget(file: FileHandle): Target {
  const writable = new WritableStream<StreamTargetChunk>({
    write: ({ data, position }) => writeAll(file, [data], position),
  });
  return new StreamTarget(writable, { chunked: true });
}
