import { closeSync, write, writeSync } from "node:fs";
import { promisify } from "node:util";

const writeAsync = promisify(write);
const maxPending = 3;

/** Writes full buffers to a file, in other threads once `drain` has been called. */
export class BackgroundWrites {
  readonly #fd: number;
  readonly #spare: Buffer[] = [];
  readonly #pending = new Set<Promise<void>>();
  #isBackground = false;
  #failure: { error: unknown } | undefined;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /**
   * Writes the first `length` bytes of `buffer` at `position`, which it keeps until then, and returns the buffer to
   * fill next. If three writes are in progress, it writes before it returns.
   * @throws the error of an earlier write, or of this one.
   */
  write(buffer: Buffer, length: number, position: number): Buffer {
    this.#throwFailure();
    if (!this.#isBackground || this.#pending.size >= maxPending) {
      writeAt(this.#fd, buffer.subarray(0, length), position);
      return buffer;
    }
    const writing = this.#writeAll(buffer, length, position).finally(() => this.#pending.delete(writing));
    this.#pending.add(writing);
    return this.#spare.pop() ?? Buffer.allocUnsafeSlow(buffer.length);
  }

  /** Resolves once at most one write is in progress. Rejects with the error of a write. */
  drain(): Promise<void> {
    this.#isBackground = true;
    return this.#waitFor(1);
  }

  /** Resolves once no write is in progress; until the next `drain`, none will be. Rejects as `drain`. */
  settle(): Promise<void> {
    this.#isBackground = false;
    return this.#waitFor(0);
  }

  /** Resolves once no write is in progress. Rejects as `drain`. */
  finished(): Promise<void> {
    return this.#waitFor(0);
  }

  /** Closes the file once no write is in progress. */
  close(): void {
    // The number of a closed file may become another file's.
    if (this.#pending.size === 0) closeSync(this.#fd);
    else void Promise.all(this.#pending).then(() => closeSync(this.#fd));
  }

  async #waitFor(left: number): Promise<void> {
    while (this.#pending.size > left) await Promise.race(this.#pending);
    this.#throwFailure();
  }

  /** Never rejects. */
  async #writeAll(buffer: Buffer, length: number, position: number): Promise<void> {
    try {
      for (let done = 0; done < length;) {
        const { bytesWritten } = await writeAsync(this.#fd, buffer, done, length - done, position + done);
        done += bytesWritten;
      }
    } catch (error) {
      this.#failure ??= { error };
    }
    this.#spare.push(buffer);
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}

/** Writes all of `bytes` at `position`. */
export function writeAt(fd: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done, bytes.length - done, position + done);
}
