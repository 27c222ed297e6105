import type { FileHandle } from "node:fs/promises";

const stepBytes = 1 << 20;

/** Returns whether two files, which are at least that long, have the same first `bytes`. */
export async function haveSameStart(one: FileHandle, other: FileHandle, bytes: number): Promise<boolean> {
  for (let at = 0; at < bytes; at += stepBytes) {
    const length = Math.min(stepBytes, bytes - at);
    const [mine, theirs] = [Buffer.alloc(length), Buffer.alloc(length)];
    await one.read(mine, 0, length, at);
    await other.read(theirs, 0, length, at);
    if (!mine.equals(theirs)) return false;
  }
  return true;
}
