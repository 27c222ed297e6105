import type { MediaStream } from "../../src/files/media-stream.ts";

/** Creates a stream of a medium that a task makes, with what `reads` read, one after the other. */
export function createStream(reads: ((into: Buffer) => Promise<number | null>)[]): MediaStream {
  return {
    mimeType: "video/mp4",
    ext: "mp4",
    bytes: null,
    aliveMs: performance.now(),
    read: async (into) => (await reads.shift()?.(into)) ?? null,
    close: async () => {},
  };
}
