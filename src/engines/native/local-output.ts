import { open } from "node:fs/promises";
import { StreamTarget, type StreamTargetChunk, type Target } from "mediabunny";
import { writeAll } from "./parts/write-all.ts";

/**
 * Creates or empties a file for mediabunny to write. mediabunny's FilePathTarget leaves the file open after
 * a failure, and treats a short write as a complete one.
 */
export async function openLocalOutput(
  path: string,
): Promise<{ target: Target; close(): Promise<void> }> {
  const file = await open(path, "w");
  const writable = new WritableStream<StreamTargetChunk>({
    write: ({ data, position }) => writeAll(file, [data], position),
  });
  return {
    target: new StreamTarget(writable, { chunked: true }),
    close: () => file.close(),
  };
}
