import { closeSync, write, writeSync } from "node:fs";
import { promisify } from "node:util";

const writeAsync = promisify(write);
const maxPending = 3;

/** Creates a writer of full buffers to a file, in other threads once `drain` has been called. */
export function createBackgroundWrites(fd: number) {
  const spare: Buffer[] = [];
  const pending = new Set<Promise<void>>();
  let isBackground = false;
  let failure: { error: unknown } | undefined;

  function throwFailure(): void {
    if (failure !== undefined) throw failure.error;
  }

  /** Never rejects. */
  async function writeAll(buffer: Buffer, length: number, position: number): Promise<void> {
    try {
      for (let done = 0; done < length;) {
        const { bytesWritten } = await writeAsync(fd, buffer, done, length - done, position + done);
        done += bytesWritten;
      }
    } catch (error) {
      failure ??= { error };
    }
    spare.push(buffer);
  }

  async function waitFor(left: number): Promise<void> {
    while (pending.size > left) await Promise.race(pending);
    throwFailure();
  }

  return {
    /**
     * Writes the first `length` bytes of `buffer` at `position`, which it keeps until then, and returns the buffer to
     * fill next. If three writes are in progress, it writes before it returns.
     * @throws the error of an earlier write, or of this one.
     */
    write(buffer: Buffer, length: number, position: number): Buffer {
      throwFailure();
      if (!isBackground || pending.size >= maxPending) {
        writeAt(fd, buffer.subarray(0, length), position);
        return buffer;
      }
      const writing = writeAll(buffer, length, position).finally(() => pending.delete(writing));
      pending.add(writing);
      return spare.pop() ?? Buffer.allocUnsafeSlow(buffer.length);
    },
    /** Resolves once at most one write is in progress. Rejects with the error of a write. */
    drain(): Promise<void> {
      isBackground = true;
      return waitFor(1);
    },
    /** Resolves once no write is in progress; until the next `drain`, none will be. Rejects as `drain`. */
    settle(): Promise<void> {
      isBackground = false;
      return waitFor(0);
    },
    /** Resolves once no write is in progress. Rejects as `drain`. */
    finished: (): Promise<void> => waitFor(0),
    /** Closes the file once no write is in progress. */
    close(): void {
      // The number of a closed file may become another file's.
      if (pending.size === 0) closeSync(fd);
      else void Promise.all(pending).then(() => closeSync(fd));
    },
  };
}

/** Writes all of `bytes` at `position`. */
export function writeAt(fd: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done, bytes.length - done, position + done);
}
