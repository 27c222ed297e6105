import { lstat, open, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { diskError, isMissing } from "../../../files/disk-error.ts";
import { noFollow } from "../../../files/no-follow.ts";
import type { ByteRange } from "../../../net/byte-range.ts";
import type { HeadersFor } from "../../../net/client.ts";
import type { Journal } from "./journal.ts";
import type { PartState } from "./journal-records.ts";
import { type Representation, withoutQuery } from "./representation.ts";

/** A resource, or a range of one, that is downloaded into one file. */
export interface Part {
  /** File name: 1 to 64 lower-case letters, digits and hyphens. */
  name: string;
  url: URL;
  range: ByteRange | null;
  /** Most bytes that one request asks for; default all. */
  chunkBytes?: number | undefined;
}

export interface FetchOptions {
  signal: AbortSignal;
  /** Further header fields of each request. */
  headers?: HeadersFor;
  /** Called for each response whose bytes are used, with the size of the complete part; `null`: unknown. */
  onTotal?: (bytes: number | null) => void;
  /** Called after each write; `PartStore.bytes` is then up to date. Must not throw. */
  onBytes?: () => void;
}

export interface FetchedPart {
  path: string;
  /** Bytes. */
  size: number;
}

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
