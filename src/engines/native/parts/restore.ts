import { stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { diskError, isMissing } from "../../../files/disk-error.ts";
import { createStoredPart, type StoredPart } from "./stored-part.ts";
import type { Journal } from "./journal.ts";
import type { Entry } from "./journal-records.ts";

/** The parts that earlier runs left, by name, with their files cut to what can be trusted. */
export async function restoreParts(
  folder: string,
  journal: Journal,
): Promise<Map<string, StoredPart>> {
  const { state, boot } = journal;
  const isSameBoot = state.boot === boot;
  const parts = new Map<string, StoredPart>();
  for (const [name, entry] of state.entries) {
    const part = createStoredPart(name, join(folder, name));
    await restore(part, entry, isSameBoot);
    parts.set(name, part);
  }
  if (!isSameBoot) await journal.add({ type: "boot", boot });
  return parts;
}

async function restore(part: StoredPart, entry: Entry, isSameBoot: boolean): Promise<void> {
  const { path } = part;
  try {
    const { size } = await stat(path);
    const trusted = isSameBoot ? size : Math.min(size, entry.synced);
    if (trusted < size) await truncate(path, trusted);
    part.range = entry.range;
    part.representation = entry.of;
    part.size = trusted;
    part.synced = Math.min(entry.synced, trusted);
    part.isComplete = trusted === entry.size;
  } catch (error) {
    if (!isMissing(error)) throw diskError(`open ${path}`, error);
  }
}
