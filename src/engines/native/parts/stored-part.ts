import type { ByteRange } from "../../../net/byte-range.ts";
import type { Journal } from "./journal.ts";
import type { Representation } from "./representation.ts";

/** A part as it is in the folder. */
export interface StoredPart {
  readonly name: string;
  readonly path: string;
  range: ByteRange | null;
  /** What its bytes are of; `null`: nothing that could be gone on with. */
  representation: Representation | null;
  /** Bytes in the file, in order, all `of` the same. */
  size: number;
  /** How many of them have been flushed to the disk. */
  synced: number;
  isComplete: boolean;
  /** Counts the times it began anew. */
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
 * How many bytes `range` of a resource of `total` bytes has; `null`: not known. `undefined`: the
 * resource ends before.
 */
export function sizeOf(range: ByteRange | null, total: number | null): number | null | undefined {
  const { offset, length } = range ?? { offset: 0 };
  if (total !== null && offset + (length ?? 0) > total) return undefined;
  return length ?? (total === null ? null : total - offset);
}

/** The next answer begins the part anew; its bytes stay until then. */
export function invalidate(held: StoredPart): void {
  held.representation = null;
  held.isComplete = false;
}

/** Once its file has been emptied. Nothing may be written to it before this resolves. */
export async function beginPart(
  held: StoredPart,
  range: ByteRange | null,
  representation: Representation,
  journal: Journal,
): Promise<void> {
  const wasSynced = held.synced > 0;
  Object.assign(held, { range, representation, size: 0, synced: 0, isComplete: false });
  held.generation += 1;
  await journal.add({ type: "begin", part: held.name, range, of: representation });
  // Else what was flushed of the old bytes could come to vouch for new ones.
  if (wasSynced) await journal.sync();
}

export async function endPart(held: StoredPart, journal: Journal): Promise<void> {
  await journal.add({ type: "end", part: held.name, size: held.size });
  held.isComplete = true;
}
