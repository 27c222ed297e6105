import { open } from "node:fs/promises";

/** Flushes what any process wrote to the file at `path` to the disk (fdatasync). */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
}
