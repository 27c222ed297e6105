import { randomBytes } from "node:crypto";
import { type FileHandle, open, rm } from "node:fs/promises";
import { ServiceError } from "../../model/errors.ts";

/** More than the pages that the largest new task, with an idempotency key, adds to the write-ahead log. */
const probeBytes = 128 * 1024;

/** Checks that the disk has space for a task. */
export interface SpaceProbe {
  /**
   * Writes as much as a task needs to a file without a name beside the database, and frees it again.
   *
   * @throws ServiceError `unavailable`
   */
  check(): Promise<void>;
  close(): Promise<void>;
}

export function createSpaceProbe(path: string): SpaceProbe {
  // A file system that compresses cannot make less of it.
  const bytes = randomBytes(probeBytes);
  let file: FileHandle | undefined;

  async function openUnnamed(): Promise<FileHandle> {
    const name = `${path}-probe`;
    await rm(name, { force: true });
    const opened = await open(name, "wx");
    await rm(name);
    return opened;
  }

  return {
    async check() {
      try {
        file ??= await openUnnamed();
        try {
          // A disk that gets full takes a part of the bytes and refuses the next call.
          for (let at = 0; at < bytes.length;) {
            at += (await file.write(bytes, at, bytes.length - at, at)).bytesWritten;
          }
          await file.datasync();
        } finally {
          await file.truncate();
        }
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        const message = `the task store has no space for ${probeBytes} bytes, as a task may need: ${reason}`;
        throw new ServiceError("unavailable", message, { cause });
      }
    },
    async close() {
      await file?.close();
      file = undefined;
    },
  };
}
