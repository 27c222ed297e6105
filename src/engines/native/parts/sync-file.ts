import { open } from "node:fs/promises";

/** Flushes a file to the disk (fdatasync), whichever process wrote it. */
export async function syncFile(path: string): Promise<void> {
  await using file = await open(path, "r+");
  await file.datasync();
}
