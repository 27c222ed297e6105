import { open } from "node:fs/promises";
import { noFollow } from "../../../files/no-follow.ts";
import type { ByteRange } from "../../../net/byte-range.ts";
import type { Journal } from "./journal.ts";
import type { Part } from "./part.ts";
import { type Representation, withoutQuery } from "./representation.ts";

/** The state of a part in its folder. */
export interface StoredPart {
  readonly name: string;
  readonly path: string;
  /** URL that its bytes were requested at, without query. */
  from: string;
  range: ByteRange | null;
  /** That of its bytes; `null`: the next response restarts the part. */
  representation: Representation | null;
  /** Bytes in the file. */
  size: number;
  /** What the file has after them: the next response must begin with it. */
  tail: Uint8Array;
  /** Bytes flushed to the disk. */
  synced: number;
  isComplete: boolean;
  /** Number of restarts. */
  generation: number;
}

const noBytes = new Uint8Array();

export function createStoredPart(name: string, path: string): StoredPart {
  return {
    name,
    path,
    from: "",
    range: null,
    representation: null,
    size: 0,
    tail: noBytes,
    synced: 0,
    isComplete: false,
    generation: 0,
  };
}

/** Manifests are off by one, or count what only the packager's file had. */
const maxExcessBytes = 16;

/**
 * Returns the bytes that `range` (`null`: all) has in a resource of `total` bytes; `null` if unknown,
 * `undefined` if the resource is shorter. A range may end up to 16 bytes past the end of the resource.
 */
export function sizeOf(range: ByteRange | null, total: number | null): number | null | undefined {
  const { offset, length } = range ?? { offset: 0 };
  if (total === null) return length ?? null;
  const left = total - offset;
  if (left < (length === undefined ? 0 : Math.min(1, length))) return undefined;
  if (length === undefined) return left;
  return length - left > maxExcessBytes ? undefined : Math.min(length, left);
}

/** Marks the part for a restart; keeps its bytes until the next response. */
export function invalidate(stored: StoredPart): void {
  stored.representation = null;
  stored.isComplete = false;
}

/** Restarts a part whose file was emptied. The file must not be written before this resolves. */
export async function beginPart(
  stored: StoredPart,
  { url, range }: Part,
  representation: Representation,
  journal: Journal,
): Promise<void> {
  const wasSynced = stored.synced > 0;
  const from = withoutQuery(url);
  Object.assign(stored, { from, range, representation, size: 0, synced: 0, isComplete: false });
  stored.tail = noBytes;
  stored.generation += 1;
  await journal.add({ type: "begin", part: stored.name, from, range, of: representation });
  // Otherwise the `synced` record of the old bytes could make new ones trusted.
  if (wasSynced) await journal.sync();
}

/** Bytes that a response from another URL must repeat. */
const tailBytes = 4096;

/**
 * Takes back the last bytes of a part that is now at another URL: the next response must begin with them.
 * Returns how many they are. They stay in the file.
 */
export async function reopenPart(stored: StoredPart): Promise<number> {
  const length = Math.min(stored.size, tailBytes);
  await using file = await open(stored.path, noFollow.read);
  const { buffer, bytesRead } = await file.read(
    Buffer.alloc(length),
    0,
    length,
    stored.size - length,
  );
  stored.tail = buffer.subarray(0, bytesRead);
  stored.size -= length;
  stored.synced = Math.min(stored.synced, stored.size);
  stored.isComplete = false;
  return length;
}

/** Records that the bytes of the part have been found at the URL `from`. */
export async function movePart(
  stored: StoredPart,
  from: string,
  representation: Representation,
  journal: Journal,
): Promise<void> {
  Object.assign(stored, { from, representation });
  await journal.add({ type: "moved", part: stored.name, from, of: representation });
}

/** Records that the part is complete. */
export async function endPart(stored: StoredPart, journal: Journal): Promise<void> {
  await journal.add({ type: "end", part: stored.name, size: stored.size });
  stored.isComplete = true;
}
