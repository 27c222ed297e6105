import { lstat, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { diskError, isMissing } from "../../../files/disk-error.ts";
import { createStoredPart, type StoredPart } from "./stored-part.ts";
import type { Journal } from "./journal.ts";
import type { PartState } from "./journal-records.ts";

/** Returns the parts of earlier runs by name; cuts their files to the bytes that can be trusted. */
export async function restoreParts(
  folder: string,
  journal: Journal,
): Promise<Map<string, StoredPart>> {
  const { state, boot } = journal;
  const isSameBoot = state.boot === boot;
  const parts = new Map<string, StoredPart>();
  for (const [name, recorded] of state.parts) {
    const part = createStoredPart(name, join(folder, name));
    await restore(part, recorded, isSameBoot);
    parts.set(name, part);
  }
  if (!isSameBoot) await journal.add({ type: "boot", boot });
  return parts;
}

async function restore(part: StoredPart, recorded: PartState, isSameBoot: boolean): Promise<void> {
  const { path } = part;
  try {
    const found = await lstat(path);
    // Not a part: somebody has put a link in its place, which is not followed.
    if (!found.isFile()) return await rm(path, { recursive: true });
    const { size } = found;
    const trusted = isSameBoot ? size : Math.min(size, recorded.synced);
    if (trusted < size) await truncate(path, trusted);
    part.from = recorded.from;
    part.range = recorded.range;
    part.representation = recorded.of;
    part.size = trusted;
    part.synced = Math.min(recorded.synced, trusted);
    part.isComplete = trusted === recorded.size;
  } catch (error) {
    if (!isMissing(error)) throw diskError(`open ${path}`, error);
  }
}
