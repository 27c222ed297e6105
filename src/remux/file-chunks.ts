import { readSync } from "node:fs";

const chunkBytes = 1 << 20;

/** Yields the first `size` bytes of an open file, 1 MiB at a time; each is valid until the next. */
export function* readChunks(fd: number, size: number): Generator<Uint8Array> {
  const buffer = Buffer.allocUnsafeSlow(Math.min(chunkBytes, size));
  for (let at = 0; at < size;) {
    const count = readSync(fd, buffer, 0, Math.min(buffer.length, size - at), at);
    if (count === 0) return;
    yield buffer.subarray(0, count);
    at += count;
  }
}
