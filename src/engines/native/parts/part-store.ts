import { ServiceError } from "../../../model/errors.ts";
import { createKeyedMutex } from "../../../async/keyed-mutex.ts";
import type { HttpClient } from "../../../net/client.ts";
import { Checkpoints } from "./checkpoints.ts";
import { PartFetch } from "./fetch-part.ts";
import { type Journal, openJournal } from "./journal.ts";
import { type CheckFreeSpace, Quota } from "./quota.ts";
import type { TakeBytes } from "./receiver.ts";
import { isSameRepresentation, type Representation } from "./representation.ts";
import { Repeats, RetryPolicy } from "./retry-policy.ts";
import { type FetchedPart, type FetchOptions, type Part, StoredPart } from "./stored-part.ts";
import { WholeResources } from "./whole-resources.ts";

export interface PartStoreOptions {
  /** Exists; belongs to this store alone, which empties it if `identity` is new. */
  folder: string;
  client: HttpClient;
  /** Identifies the content: parts with the same identity and name are equal. */
  identity: string;
  /** Limit of all parts together, and of what servers without ranges send before them. */
  maxBytes: number;
  /** Called when a part begins and every 16 MiB. */
  checkFreeSpace: CheckFreeSpace;
  /** Wait after the first failure; doubles with each further one. Default 500. */
  backoffMs?: number;
  /** Between two failures, fewer new bytes per second are no progress; default 0. */
  minSpeedBps?: number;
  /** Says how much may be received; default: all at once. */
  takeBytes?: TakeBytes | undefined;
}

/**
 * Opens a store of downloaded parts, files in a folder that outlives the process, with those of earlier runs. A journal records which bytes can be trusted: all written
 * ones until the machine restarts, then only flushed ones. Parts are flushed every 16 MiB, at most every 5 s.
 *
 * @throws ServiceError `disk_full`, `unavailable`
 */
export async function openPartStore(options: PartStoreOptions): Promise<PartStore> {
  const journal = await openJournal(options.folder, options.identity);
  try {
    return new PartStore(options, journal, await restoreParts(options.folder, journal));
  } catch (error) {
    await journal.close();
    throw error;
  }
}

export class PartStore {
  readonly #options: PartStoreOptions;
  readonly #journal: Journal;
  readonly #stored: Map<string, StoredPart>;
  readonly #ahead = new Set<StoredPart>();
  readonly #checkpoints: Checkpoints;
  readonly #quota: Quota;
  readonly #mutex = createKeyedMutex();
  readonly #repeats = new Repeats();
  readonly #wholes = new WholeResources();
  #closing: Promise<void> | undefined;

  /** @param stored The parts of earlier runs, by name. */
  constructor(options: PartStoreOptions, journal: Journal, stored: Map<string, StoredPart>) {
    this.#options = options;
    this.#journal = journal;
    this.#stored = stored;
    this.#checkpoints = new Checkpoints(journal);
    this.#quota = new Quota(options.maxBytes, options.checkFreeSpace);
    for (const { size } of stored.values()) this.#quota.add(size);
  }

  /** On the disk, earlier runs included, but for parts that are fetched ahead; decreases when a part restarts. */
  get bytes(): number {
    return this.#quota.bytes - this.#ahead.values().reduce((sum, { size }) => sum + size, 0);
  }

  /**
   * Returns a part once it is complete: without a request if an earlier run completed it; else it resumes if a
   * validator shows that the rest belongs to the same representation (RFC 9110 §13.1.5, §14.2), and restarts if not.
   * Bytes of two representations never meet in a file. A part that was fetched at another URL (its query
   * apart), or through a redirect, which may lead elsewhere each time, is used once a response has the same validator and length and repeats
   * its last 4 KiB. If a server refuses ranges, the part restarts, or is cut from all of the resource, which then counts in its place
   * (`Part.wholeName`). Parts may be fetched concurrently; calls for the same name run one after the other.
   *
   * Retries after a lost or stalled connection and after 408, 425, 429 and 5xx, respecting a `Retry-After`
   * of up to 30 s. Gives up at the 4th failure in a row without progress, and at once if the server is
   * too slow or its name cannot be resolved. What is empty, text, shorter than
   * its range with status 200, or not whole (`Part.isWhole`) is fetched three times more, then taken; at once if 12 such repeats in a row, of any
   * parts, gave nothing else.
   *
   * @throws ServiceError of the client; `upstream_invalid` (the resource is shorter than the range, or keeps
   * changing); `too_large`; `disk_full`; `unavailable` (the file system failed). Errors of `checkFreeSpace`
   * and `onTotal`; `signal.reason`. Keeps the bytes fetched so far.
   */
  async fetch(part: Part, options: FetchOptions): Promise<FetchedPart> {
    const { range, wholeName } = part;
    if (range === null || wholeName === undefined) return this.#fetch(part, options);
    const fetch = (each: Part) => this.#fetch(each, options);
    return this.#wholes.fetch(part, wholeName, { fetch, hasBegun: this.hasBegun(wholeName) });
  }

  async #fetch(part: Part, options: FetchOptions): Promise<FetchedPart> {
    if (this.#closing !== undefined) throw new ServiceError("unavailable", "the part store is closed");
    const { client, takeBytes, backoffMs = 500, minSpeedBps = 0 } = this.#options;
    const stored = this.#partNamed(part.name);
    if (part.isAhead === true) this.#ahead.add(stored);
    const transfer = {
      stored,
      part,
      options,
      checkpoints: this.#checkpoints,
      quota: this.#quota,
      takeBytes,
      repeats: this.#repeats,
    };
    return this.#mutex.runExclusive(part.name, () => {
      return new PartFetch(transfer, client, new RetryPolicy(backoffMs, options.signal, minSpeedBps)).run();
    });
  }

  /** Whether a part has bytes, maybe of an earlier run. */
  hasBegun(name: string): boolean {
    return (this.#stored.get(name)?.size ?? 0) > 0;
  }

  /** Removes the parts whose names begin with `prefix` and are neither being fetched nor read; they stop counting. */
  async remove(prefix: string): Promise<void> {
    for (const part of [...this.#stored.values()].filter(({ name }) => name.startsWith(prefix))) {
      await part.remove();
      this.#quota.add(-part.size);
      this.#stored.delete(part.name);
    }
  }

  /** Returns where a part is, or will be. */
  pathOf(name: string): string {
    return this.#partNamed(name).path;
  }

  /** Whether the server sent the length of the part at `path`; true if no part is there. */
  isLengthKnown(path: string): boolean {
    const part = this.#stored.values().find((known) => known.path === path);
    return part?.representation?.total !== null;
  }

  /** Whether bytes of a representation seem to belong to a part, which need not be complete; the caller compares bytes, too. */
  seemsPartOf(name: string, representation: Representation | null): boolean {
    const known = this.#stored.get(name)?.representation ?? null;
    return known !== null && representation !== null && isSameRepresentation(known, representation, true);
  }

  /** Returns the paths of the complete parts. */
  complete(): string[] {
    return this.#completeParts().map(({ path }) => path);
  }

  /** Returns the paths of the parts that ended with their connection, maybe too early. */
  unconfirmed(): string[] {
    const found = this.#completeParts().filter(({ representation }) => representation?.endsWithConnection === true);
    return found.map(({ path }) => path);
  }

  /** Waits for fetches in progress; nothing is touched afterwards. Safe to call twice. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    await this.#mutex.onIdle();
    this.#checkpoints.stop();
    await this.#journal.close();
  }

  #completeParts(): StoredPart[] {
    return [...this.#stored.values()].filter(({ isComplete }) => isComplete);
  }

  #partNamed(name: string): StoredPart {
    if (!/^[a-z\d-]{1,64}$/.test(name)) throw new TypeError(`invalid part name: ${name}`);
    return this.#stored.getOrInsertComputed(name, () => new StoredPart(name, this.#options.folder, this.#journal));
  }
}

/** Returns the parts of earlier runs by name. */
async function restoreParts(folder: string, journal: Journal): Promise<Map<string, StoredPart>> {
  const { state, boot } = journal;
  const isSameBoot = state.boot === boot;
  const parts = new Map<string, StoredPart>();
  for (const [name, recorded] of state.parts) {
    const part = new StoredPart(name, folder, journal);
    await part.restore(recorded, isSameBoot);
    parts.set(name, part);
  }
  if (!isSameBoot) await journal.add({ type: "boot", boot });
  return parts;
}
