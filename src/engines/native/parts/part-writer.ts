import { type FileHandle, lstat, open, unlink } from "node:fs/promises";
import { diskError, unlessMissing, withDiskError } from "../../../files/disk-error.ts";
import { noFollow } from "../../../files/no-follow.ts";
import { writeAll } from "./disk-writes.ts";

interface PartWriterHooks {
  /** Called after each write with the number of bytes added to the file. */
  onWritten(bytes: number): void;
  /** Called when a chunk is in the file and no longer used. */
  onDone(chunk: Uint8Array): void;
}

/** Opens a file for writing from byte `start`; 0 replaces it, for whoever reads the old one. @throws ServiceError `disk_full`, `unavailable` */
export function openPartWriter(path: string, start: number, hooks: PartWriterHooks): Promise<PartWriter> {
  return withDiskError(`open ${path}`, async () => {
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
    if (this.#failure !== undefined) throw diskError(`write ${this.#path}`, this.#failure);
  }
}
