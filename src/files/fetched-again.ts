import { type FileHandle, lstat, open } from "node:fs/promises";
import { join } from "node:path";
import { unlessMissing } from "./disk-error.ts";
import { noFollow } from "./no-follow.ts";
import { StreamBrokenError, type StreamRun } from "./stream-run.ts";

export const refetchedError = (): StreamBrokenError =>
  new StreamBrokenError("the file was fetched again from its start");

const comparedBytes = 1024 * 1024;

/** The file that takes the place of one that is sent while it grows: a server without ranges makes a run fetch it again from its start. */
export class FetchedAgain {
  #found: { file: FileHandle; inode: number } | undefined;
  /** So many bytes are the same in both files. */
  #sameBytes = 0;

  get inode(): number | undefined {
    return this.#found?.inode;
  }

  /** Looks for a newer file of that name; it is kept open, as its folder goes when the run has succeeded. */
  async find(folder: string, { header, inode }: StreamRun): Promise<void> {
    const path = join(folder, header.file);
    const now = await unlessMissing(lstat(path));
    if (now === undefined || now.ino === (this.inode ?? inode)) return;
    const file = await unlessMissing(open(path, noFollow.read));
    if (file === undefined) return;
    await this.close();
    this.#found = { file, inode: (await file.stat()).ino };
    this.#sameBytes = 0;
  }

  /**
   * Returns the run with that file instead of its own, which is closed, once that has the first `bytes` too; undefined if there is none, or it lacks some so far.
   *
   * @throws StreamBrokenError if they differ
   */
  async take(run: StreamRun, bytes: number): Promise<StreamRun | undefined> {
    const found = this.#found;
    if (found === undefined) return undefined;
    while (this.#sameBytes < bytes) {
      const at = this.#sameBytes;
      const again = await readBytes(found.file, at, Math.min(comparedBytes, bytes - at));
      if (again.length === 0) return undefined;
      if (!again.equals(await readBytes(run.file, at, again.length))) throw refetchedError();
      this.#sameBytes += again.length;
    }
    this.#found = undefined;
    await run.file.close();
    const close = async (): Promise<void> => {
      await found.file.close();
      await run[Symbol.asyncDispose]();
    };
    return { ...run, ...found, [Symbol.asyncDispose]: close };
  }

  async close(): Promise<void> {
    await this.#found?.file.close();
  }
}

async function readBytes(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.allocUnsafeSlow(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}
