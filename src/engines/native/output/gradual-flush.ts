import { open } from "node:fs/promises";
import { syncFile } from "../parts/disk-writes.ts";

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
