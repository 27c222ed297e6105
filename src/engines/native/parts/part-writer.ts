import { open } from "node:fs/promises";
import { diskError } from "../../../files/disk-error.ts";
import { noFollow } from "../../../files/no-follow.ts";
import { writeAll } from "./write-all.ts";

/** Writes a stream to a file while it arrives. */
export interface PartWriter {
  /** Bytes accepted and not yet in the file. */
  readonly pending: number;
  /**
   * Accepts a chunk, which must not be changed afterwards; waits only if 1 MiB or 1,024 chunks are pending.
   *
   * @throws ServiceError `disk_full`, `unavailable`: of this or an earlier write
   */
  write(chunk: Uint8Array): Promise<void>;
  /** Closes the file after all writes, also if one failed. @throws ServiceError as `write` */
  close(): Promise<void>;
}

export interface PartWriterHooks {
  /** Called after each write with the number of bytes added to the file. */
  onWritten(bytes: number): void;
  /** Called when a chunk is in the file and no longer used. */
  onDone(chunk: Uint8Array): void;
}

const maxPendingBytes = 1024 * 1024;
/** Bounds the memory of many tiny chunks. */
const maxPendingChunks = 1024;

/**
 * Opens a file for writing from byte `start`; 0 empties it. Performs one write at a time, of all chunks that
 * arrived during the last one.
 */
export async function openPartWriter(
  path: string,
  start: number,
  { onWritten, onDone }: PartWriterHooks,
): Promise<PartWriter> {
  const flags = start === 0 ? noFollow.overwrite : noFollow.update;
  const file = await open(path, flags).catch((error: unknown) => {
    throw diskError(`open ${path}`, error);
  });
  let position = start;
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  let writingBytes = 0;
  let writing: Promise<void> | undefined;
  let failure: unknown;

  /** Never rejects. */
  async function writeNext(): Promise<void> {
    const chunks = pending;
    writingBytes = pendingBytes;
    pending = [];
    pendingBytes = 0;
    try {
      await writeAll(file, chunks, position);
      position += writingBytes;
      onWritten(writingBytes);
      chunks.forEach(onDone);
      writingBytes = 0;
    } catch (error) {
      failure = error;
    }
    writing = pending.length > 0 && failure === undefined ? writeNext() : undefined;
  }

  function throwFailure(): void {
    if (failure !== undefined) throw diskError(`write ${path}`, failure);
  }

  return {
    get pending() {
      return pendingBytes + writingBytes;
    },

    async write(chunk) {
      throwFailure();
      pending.push(chunk);
      pendingBytes += chunk.length;
      writing ??= writeNext();
      if (pendingBytes >= maxPendingBytes || pending.length >= maxPendingChunks) await writing;
      throwFailure();
    },

    async close() {
      // First the write in progress, then that of everything pending.
      await writing;
      await writing;
      await file.close().catch((error: unknown) => {
        failure ??= error;
      });
      throwFailure();
    },
  };
}
