import { open } from "node:fs/promises";
import { StreamTarget, type StreamTargetChunk, type Target } from "mediabunny";
import { writeAll } from "./parts/write-all.ts";

/**
 * Makes the file at `path`, or empties it, for mediabunny to write. Its own FilePathTarget leaves the file
 * open after a failure, and takes a write that was cut short for a whole one.
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
