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

const bytesBetween = 64 * 1024 * 1024;

/** Flushes a file to the disk while it is written, so that little is left to flush at its end. */
export function createGradualFlush() {
  let flushedBytes = 0;
  /** Stays if it fails: the system may have dropped the bytes that it could not write. */
  let running: Promise<void> | undefined;
  return {
    /** Notes how many bytes the file at `path` has by now; starts a flush every 64 MiB. */
    onWritten(path: string, bytes: number): void {
      if (running !== undefined || bytes - flushedBytes < bytesBetween) return;
      flushedBytes = bytes;
      running = syncFile(path).then(() => void (running = undefined));
      running.catch(() => {});
    },
    /** Flushes all of the file. Rejects with the first error of a flush. */
    async finish(path: string): Promise<void> {
      await running;
      await using file = await open(path, "r+");
      await file.sync();
    },
  };
}
