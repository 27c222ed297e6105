import type { ByteRange } from "../../../net/byte-range.ts";
import type { Journal } from "./journal.ts";
import type { Representation } from "./representation.ts";

/** The state of a part in its folder. */
export interface StoredPart {
  readonly name: string;
  readonly path: string;
  range: ByteRange | null;
  /** That of its bytes; `null`: the next response restarts the part. */
  representation: Representation | null;
  /** Bytes in the file. */
  size: number;
  /** Bytes flushed to the disk. */
  synced: number;
  isComplete: boolean;
  /** Number of restarts. */
  generation: number;
}

export function createStoredPart(name: string, path: string): StoredPart {
  return {
    name,
    path,
    range: null,
    representation: null,
    size: 0,
    synced: 0,
    isComplete: false,
    generation: 0,
  };
}

/**
 * Returns the bytes that `range` (`null`: all) has in a resource of `total` bytes; `null` if unknown,
 * `undefined` if the resource is shorter.
 */
export function sizeOf(range: ByteRange | null, total: number | null): number | null | undefined {
  const { offset, length } = range ?? { offset: 0 };
  if (total !== null && offset + (length ?? 0) > total) return undefined;
  return length ?? (total === null ? null : total - offset);
}

/** Marks the part for a restart; keeps its bytes until the next response. */
export function invalidate(stored: StoredPart): void {
  stored.representation = null;
  stored.isComplete = false;
}

/** Restarts a part whose file was emptied. The file must not be written before this resolves. */
export async function beginPart(
  stored: StoredPart,
  range: ByteRange | null,
  representation: Representation,
  journal: Journal,
): Promise<void> {
  const wasSynced = stored.synced > 0;
  Object.assign(stored, { range, representation, size: 0, synced: 0, isComplete: false });
  stored.generation += 1;
  await journal.add({ type: "begin", part: stored.name, range, of: representation });
  // Otherwise the `synced` record of the old bytes could make new ones trusted.
  if (wasSynced) await journal.sync();
}

/** Records that the part is complete. */
export async function endPart(stored: StoredPart, journal: Journal): Promise<void> {
  await journal.add({ type: "end", part: stored.name, size: stored.size });
  stored.isComplete = true;
}
