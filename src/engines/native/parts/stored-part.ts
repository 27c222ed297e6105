import { lstat, open, rm, truncate } from "node:fs/promises";
import { basename, join } from "node:path";
import { diskError, isMissing, withDiskError } from "../../../files/disk-error.ts";
import { noFollow } from "../../../files/no-follow.ts";
import type { ByteRange } from "../../../net/byte-range.ts";
import type { HeadersFor } from "../../../net/client.ts";
import type { Journal, PartState } from "./journal.ts";
import { type Representation, withoutQuery } from "./representation.ts";

/** A resource, or a range of one, that is downloaded into one file. */
export interface Part {
  /** File name: 1 to 64 lower-case letters, digits and hyphens. */
  name: string;
  url: URL;
  range: ByteRange | null;
  /** Most bytes that it may have; default: as many as all parts together. */
  maxBytes?: number;
  /** Most bytes that one request asks for; default all. */
  chunkBytes?: number | undefined;
  /** A response that is not a part of the resource (206) is an error; default: what `range` has of it is taken. */
  isPartialOnly?: boolean;
  /** It is fetched before the part that has its bytes too, and only those are counted. A server that refuses it is not asked again. */
  isAhead?: boolean;
  /** Name of the part that all of the resource becomes if its server sends no ranges of it; this one is then cut from that. */
  wholeName?: string | undefined;
  /** Others are cut from it. It is fetched without ranges, from its start each time. */
  isToCut?: true;
  /** Returns whether a file has all that it should; asked only if the server states no length. Default: it has. */
  isWhole?: (path: string) => boolean;
  /** `isWhole` is asked whatever the server states: nothing else can be used, as of what is encrypted in blocks. */
  mustBeWhole?: boolean;
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
  /** What the bytes belong to. */
  representation: Representation | null;
}

const noBytes = new Uint8Array();

/** Bytes that a response from another URL must repeat. */
const tailBytes = 4096;

/** The state of a part in its folder. */
export class StoredPart {
  readonly name: string;
  readonly path: string;
  /** URL that its bytes were requested at, without query. */
  from = "";
  range: ByteRange | null = null;
  /** That of its bytes; `null`: the next response restarts the part. */
  representation: Representation | null = null;
  /** Bytes in the file. */
  size = 0;
  /** What the file has after them: the next response must begin with it. */
  tail: Uint8Array = noBytes;
  /** Bytes flushed to the disk. */
  synced = 0;
  isComplete = false;
  /** Its file has been removed, and nothing more is recorded of it. */
  isRemoved = false;
  /** Number of restarts. */
  generation = 0;
  readonly #journal: Journal;

  constructor(name: string, folder: string, journal: Journal) {
    this.name = name;
    this.path = join(folder, name);
    this.#journal = journal;
  }

  /** Takes over what an earlier run has recorded; cuts the file to the bytes that can be trusted. */
  async restore(recorded: PartState, isSameBoot: boolean): Promise<void> {
    const { path } = this;
    try {
      const found = await lstat(path);
      // Not a part: another program has replaced it by a link, which is not followed.
      if (!found.isFile()) return await rm(path, { recursive: true });
      const { size } = found;
      const trusted = isSameBoot ? size : Math.min(size, recorded.synced);
      if (trusted < size) await truncate(path, trusted);
      this.from = recorded.from;
      this.range = recorded.range;
      this.representation = recorded.of;
      this.size = trusted;
      this.synced = Math.min(recorded.synced, trusted);
      this.isComplete = trusted === recorded.size;
    } catch (error) {
      if (!isMissing(error)) throw diskError(`open ${basename(path)}`, error);
    }
  }

  /** Marks the part for a restart; keeps its bytes until the next response. */
  invalidate(): void {
    this.representation = null;
    this.isComplete = false;
  }

  /** Removes its file: a later run finds none. @throws ServiceError `disk_full`, `unavailable` */
  async remove(): Promise<void> {
    this.isRemoved = true;
    await this.#journal.add({ type: "lost", part: this.name });
    // As in `begin`.
    if (this.synced > 0) await this.#journal.sync();
    await withDiskError(`remove ${basename(this.path)}`, () => rm(this.path, { force: true }));
  }

  /** Restarts a part whose file was emptied. The file must not be written before this resolves. */
  async begin({ url, range }: Part, representation: Representation): Promise<void> {
    const wasSynced = this.synced > 0;
    this.from = withoutQuery(url);
    this.range = range;
    this.representation = representation;
    this.size = 0;
    this.synced = 0;
    this.isComplete = false;
    this.tail = noBytes;
    this.generation += 1;
    const { name: part, from } = this;
    await this.#journal.add({ type: "begin", part, from, range, of: representation });
    // Otherwise the `synced` record of the old bytes could make new ones trusted.
    if (wasSynced) await this.#journal.sync();
  }

  /**
   * Takes back the last bytes of a part that is now at another URL: the next response must begin with them.
   * Returns how many they are. They stay in the file.
   */
  async reopen(): Promise<number> {
    const length = Math.min(this.size, tailBytes);
    await using file = await open(this.path, noFollow.read);
    const bytes = Buffer.alloc(length);
    const { bytesRead } = await file.read(bytes, 0, length, this.size - length);
    this.tail = bytes.subarray(0, bytesRead);
    this.size -= length;
    this.synced = Math.min(this.synced, this.size);
    this.isComplete = false;
    return length;
  }

  /** Records that the bytes of the part have been found at the URL `from`. */
  async move(from: string, representation: Representation): Promise<void> {
    this.from = from;
    this.representation = representation;
    await this.#journal.add({ type: "moved", part: this.name, from, of: representation });
  }

  /** Records that the part is complete. */
  async end(): Promise<void> {
    await this.#journal.add({ type: "end", part: this.name, size: this.size });
    this.isComplete = true;
  }
}
