import type { StoredTask } from "../documents.ts";
import type { StoredFile, StoredFiles, StoredFilesQuery } from "../store.ts";

type Entry = Pick<StoredTask, "id" | "bytes" | "finishedAt"> & { seq: number };

/** Returns the result of `storedFiles` as its contract says. */
export function storedFilesOf(
  entries: Iterable<Entry>,
  { limit, after }: StoredFilesQuery,
): StoredFiles {
  const files = [...entries].filter(({ bytes }) => bytes > 0).map(toFile);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const later = files.filter((file) => after === undefined || byFinish(file, after) > 0);
  return { bytes, oldest: later.toSorted(byFinish).slice(0, limit) };
}

function toFile({ id, seq, bytes, finishedAt }: Entry): StoredFile {
  return { id, seq, bytes, finishedAt: finishedAt ?? "" };
}

function byFinish(one: StoredFile, other: StoredFile): number {
  if (one.finishedAt === other.finishedAt) return one.seq - other.seq;
  return one.finishedAt < other.finishedAt ? -1 : 1;
}
