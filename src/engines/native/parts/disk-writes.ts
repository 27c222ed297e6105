import { type FileHandle, lstat, open, unlink } from "node:fs/promises";
import { basename } from "node:path";
import { noFollow } from "../../../files/no-follow.ts";
import { diskError, unlessMissing, withDiskError } from "../../../files/disk-error.ts";

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
    /** Notes how many bytes the file at `path` has; starts a flush every 64 MiB. */
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

interface PartWriterHooks {
  /** Called after each write with the number of bytes added to the file. */
  onWritten(bytes: number): void;
  /** Called when a chunk is in the file and no longer used. */
  onDone(chunk: Uint8Array): void;
}

/** Opens a file for writing from byte `start`; 0 replaces it, so that readers of the old one keep that. @throws ServiceError `disk_full`, `unavailable` */
export function openPartWriter(path: string, start: number, hooks: PartWriterHooks): Promise<PartWriter> {
  return withDiskError(`open ${basename(path)}`, async () => {
    if (start === 0) await removeFile(path);
    const file = await open(path, start === 0 ? noFollow.overwrite : noFollow.update);
    return new PartWriter(path, file, start, hooks);
  });
}

/** Leaves anything else than a file there: opening it fails. */
async function removeFile(path: string): Promise<void> {
  const found = await unlessMissing(lstat(path));
  if (found?.isFile()) await unlessMissing(unlink(path));
}

const maxPendingBytes = 1024 * 1024;
/** Bounds the memory of many tiny chunks. */
const maxPendingChunks = 1024;

/** Writes a stream to a file while it arrives: one write at a time, of all chunks that arrived during the last one. */
export class PartWriter {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #hooks: PartWriterHooks;
  #position: number;
  #chunks: Uint8Array[] = [];
  #chunkBytes = 0;
  #writingBytes = 0;
  #writing: Promise<void> | undefined;
  #failure: unknown;

  constructor(path: string, file: FileHandle, start: number, hooks: PartWriterHooks) {
    this.#path = path;
    this.#file = file;
    this.#position = start;
    this.#hooks = hooks;
  }

  /** Bytes accepted and not yet in the file. */
  get pending(): number {
    return this.#chunkBytes + this.#writingBytes;
  }

  /**
   * Accepts a chunk, which must not be changed afterwards; waits only if 1 MiB or 1,024 chunks are pending.
   *
   * @throws ServiceError `disk_full`, `unavailable`: of this or an earlier write
   */
  async write(chunk: Uint8Array): Promise<void> {
    this.#throwFailure();
    this.#chunks.push(chunk);
    this.#chunkBytes += chunk.length;
    this.#writing ??= this.#writeNext();
    const isFull = this.#chunkBytes >= maxPendingBytes || this.#chunks.length >= maxPendingChunks;
    if (isFull) await this.#writing;
    this.#throwFailure();
  }

  /** Closes the file after all writes, also if one failed. @throws ServiceError as `write` */
  async close(): Promise<void> {
    // First the write in progress, then that of everything pending.
    await this.#writing;
    await this.#writing;
    await this.#file.close().catch((error: unknown) => {
      this.#failure ??= error;
    });
    this.#throwFailure();
  }

  /** Never rejects. */
  async #writeNext(): Promise<void> {
    const chunks = this.#chunks;
    this.#writingBytes = this.#chunkBytes;
    this.#chunks = [];
    this.#chunkBytes = 0;
    try {
      await writeAll(this.#file, chunks, this.#position);
      this.#position += this.#writingBytes;
      this.#hooks.onWritten(this.#writingBytes);
      chunks.forEach(this.#hooks.onDone);
      this.#writingBytes = 0;
    } catch (error) {
      this.#failure = error;
    }
    const isNext = this.#chunks.length > 0 && this.#failure === undefined;
    this.#writing = isNext ? this.#writeNext() : undefined;
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw diskError(`write ${basename(this.#path)} in DATA_DIR`, this.#failure);
  }
}
