import type { FileHandle } from "node:fs/promises";

/** Writes all chunks at `position`; a single system call may write less. */
export async function writeAll(
  file: FileHandle,
  chunks: readonly Uint8Array[],
  position: number,
): Promise<void> {
  let rest = [...chunks];
  let at = position;
  while (rest.length > 0) {
    const { bytesWritten } = await file.writev(rest, at);
    at += bytesWritten;
    rest = without(rest, bytesWritten);
  }
}

function without(chunks: readonly Uint8Array[], bytes: number): Uint8Array[] {
  let left = bytes;
  return chunks.flatMap((chunk) => {
    const cut = Math.min(left, chunk.length);
    left -= cut;
    return cut === chunk.length ? [] : [chunk.subarray(cut)];
  });
}
