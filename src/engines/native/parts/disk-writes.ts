import { type FileHandle, open } from "node:fs/promises";
import { noFollow } from "../../../files/no-follow.ts";

/** Writes all chunks at `position`; a single system call may write less. */
export async function writeAll(file: FileHandle, chunks: readonly Uint8Array[], position: number): Promise<void> {
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

/** Flushes a file to the disk (fdatasync), whichever process wrote it. */
export async function syncFile(path: string): Promise<void> {
  await using file = await open(path, noFollow.update);
  await file.datasync();
}
