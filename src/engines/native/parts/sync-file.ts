import { open } from "node:fs/promises";

/** Flushes a file to the disk (fdatasync), whichever process wrote it. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
}
