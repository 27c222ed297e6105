import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { openDamageCheck } from "./damage-check.ts";

export interface HashedFile {
  sha256: string;
  /** What of its samples is damaged, in words. */
  damage: readonly string[];
}

/**
 * Hashes a file, and looks for damage in it: reads its bytes once, in order.
 * @throws `signal.reason`; the file system's own errors.
 */
export async function hashFile(path: string, signal: AbortSignal): Promise<HashedFile> {
  using check = openDamageCheck(path);
  const hash = createHash("sha256");
  const bufferBytes = 1024 * 1024;
  let spare = Buffer.allocUnsafeSlow(bufferBytes);
  await using file = await open(path, "r");
  let reading = file.read(Buffer.allocUnsafeSlow(bufferBytes));
  for (;;) {
    const { buffer, bytesRead } = await reading;
    signal.throwIfAborted();
    if (bytesRead === 0) return { sha256: hash.digest("hex"), damage: check.findings() };
    // The next bytes are read while these are used.
    reading = file.read(spare);
    reading.catch(() => {});
    const bytes = buffer.subarray(0, bytesRead);
    hash.update(bytes);
    check.take(bytes);
    spare = buffer;
  }
}
