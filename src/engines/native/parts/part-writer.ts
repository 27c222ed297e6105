import { type FileHandle, open } from "node:fs/promises";
import { diskError } from "../../../files/disk-error.ts";
import { writeAll } from "./write-all.ts";

/** Writes a stream to a file while more of it arrives. */
export interface PartWriter {
  /** Bytes that were taken and are not in the file yet. */
  readonly pending: number;
  /**
   * Takes a chunk, which must not be changed afterwards; waits only where much is pending.
   *
   * @throws ServiceError `disk_full`, `unavailable`: of this write or an earlier one
   */
  write(chunk: Uint8Array): Promise<void>;
  /** Once all is in the file. @throws as `write`; the file is closed all the same */
  close(): Promise<void>;
}

export interface PartWriterHooks {
  /** After each write, with how many bytes more are in the file. */
  onWritten(bytes: number): void;
  /** A chunk is in the file and is not looked at any more. */
  onDone(chunk: Uint8Array): void;
}

const maxPendingBytes = 1024 * 1024;
/** Memory of a chunk that holds next to nothing. */
const maxPendingChunks = 1024;

/**
 * Opens `path` for writing from byte `start`, where 0 empties it. One write is under way at a time, of
 * all that arrived during the last one.
 */
export async function openPartWriter(
  path: string,
  start: number,
  hooks: PartWriterHooks,
): Promise<PartWriter> {
  const file = await open(path, start === 0 ? "w" : "r+").catch((error: unknown) => {
    throw diskError(`open ${path}`, error);
  });
  return createPartWriter(file, path, start, hooks);
}

function createPartWriter(
  file: FileHandle,
  path: string,
  start: number,
  { onWritten, onDone }: PartWriterHooks,
): PartWriter {
  let position = start;
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  let writingBytes = 0;
  let writing: Promise<void> | undefined;
  let failure: unknown;

  /** Never rejects. */
  async function writeNext(): Promise<void> {
    const chunks = waiting;
    writingBytes = waitingBytes;
    waiting = [];
    waitingBytes = 0;
    try {
      await writeAll(file, chunks, position);
      position += writingBytes;
      onWritten(writingBytes);
      chunks.forEach(onDone);
      writingBytes = 0;
    } catch (error) {
      failure = error;
    }
    writing = waiting.length > 0 && failure === undefined ? writeNext() : undefined;
  }

  async function drain(): Promise<void> {
    if (writing === undefined) return;
    await writing;
    await drain();
  }

  function throwFailure(): void {
    if (failure !== undefined) throw diskError(`write ${path}`, failure);
  }

  return {
    get pending() {
      return waitingBytes + writingBytes;
    },

    async write(chunk) {
      throwFailure();
      waiting.push(chunk);
      waitingBytes += chunk.length;
      writing ??= writeNext();
      if (waitingBytes >= maxPendingBytes || waiting.length >= maxPendingChunks) await writing;
      throwFailure();
    },

    async close() {
      await drain();
      await file.close().catch((error: unknown) => {
        failure ??= error;
      });
      throwFailure();
    },
  };
}
