import { open } from "node:fs/promises";
import { noFollow } from "../../../files/no-follow.ts";

/** Flushes a file to the disk (fdatasync), whichever process wrote it. */
export async function syncFile(path: string): Promise<void> {
  await using file = await open(path, noFollow.update);
  await file.datasync();
}
