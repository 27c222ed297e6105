import type { KeyLimits } from "../../model/access-key.ts";
import { noTasks } from "../../feed/collection-changes.ts";
import type { ListedTask, StoredTask } from "../documents.ts";
import {
  addUse,
  assertQuota,
  bytesLeft,
  type Counted,
  noUse,
  type OwnerUse,
  type Quota,
  queueRoom,
  useChange,
} from "../quotas.ts";
import { assertStoredBytes, duplicateTaskError, taskNotFoundError } from "../rules.ts";
import type { ListQuery } from "../store.ts";
import type { StoredFile, StoredFiles, StoredFilesQuery } from "../store-types.ts";

export interface Entry extends StoredTask {
  seq: number;
  host: string;
  /** When a claim may take the task, by the steady clock; Infinity: never. */
  claimableAtMs: number;
}

/** What an owner has, and when its turn is; the owner `""` has the tasks of nobody. */
interface Owner extends OwnerUse {
  name: string;
  /** Number of its last claim; 0: it had none. */
  claimed: number;
}

/** The tasks, and what their owners have of the limits. */
export class TaskTable {
  /** How many tasks are in each state. */
  readonly counts = { ...noTasks };
  /** By id, oldest first. */
  readonly #entries = new Map<string, Entry>();
  readonly #ids = new Map<number, string>();
  readonly #owners = new Map<string, Owner>();
  readonly #limitsOf: (owner: string) => KeyLimits | undefined;
  readonly #maxQueued: number;
  #lastSeq = 0;
  #lastClaim = 0;

  /** @param limitsOf Returns those of the owner's key; undefined: it has none. */
  constructor(limitsOf: (owner: string) => KeyLimits | undefined, maxQueued: number) {
    this.#limitsOf = limitsOf;
    this.#maxQueued = maxQueued;
  }

  find(id: string): Entry | undefined {
    return this.#entries.get(id);
  }

  /** @throws ServiceError `not_found` */
  require(id: string): Entry {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw taskNotFoundError(id);
    return entry;
  }

  bySeq(seq: number): Entry | undefined {
    return this.#entries.get(this.#ids.get(seq) ?? "");
  }

  /** Returns all tasks, oldest first. */
  all(): Iterable<Entry> {
    return this.#entries.values();
  }

  /** Returns its `seq`. @throws ServiceError `conflict` if the id is taken; `quota_exceeded`. */
  insert(entry: Omit<Entry, "seq">): number {
    if (this.#entries.has(entry.id)) throw duplicateTaskError(entry.id);
    const seq = this.#lastSeq + 1;
    this.put({ ...entry, seq });
    this.#lastSeq = seq;
    this.#ids.set(seq, entry.id);
    return seq;
  }

  /** @throws ServiceError `quota_exceeded`, `StorageFullError`, with nothing stored. */
  put(entry: Entry, maxStoredBytes?: number): void {
    this.#count(entry.owner, this.#entries.get(entry.id), entry, maxStoredBytes);
    this.#entries.set(entry.id, entry);
  }

  remove(entry: Entry): void {
    this.#count(entry.owner, entry, undefined);
    this.#entries.delete(entry.id);
    this.#ids.delete(entry.seq);
  }

  #count(name: string | null, before: Counted, after: Counted, maxStoredBytes = Infinity): void {
    const change = useChange(before, after);
    const owner = this.#ownerOf(name);
    const use = addUse(owner, change);
    const limits = this.#limitsOf(owner.name);
    if (limits !== undefined) assertQuota({ limits, use }, this.#free(), before, after);
    const storedBytes = this.#owners.values().reduce((sum, { bytes }) => sum + bytes, 0);
    assertStoredBytes(storedBytes + change.bytes, maxStoredBytes);
    Object.assign(owner, use);
    if (before !== undefined) this.counts[before.state] -= 1;
    if (after !== undefined) this.counts[after.state] += 1;
  }

  #ownerOf(owner: string | null): Owner {
    const name = owner ?? "";
    return this.#owners.getOrInsertComputed(name, () => ({ name, ...noUse, claimed: 0 }));
  }

  oldestQueued(): Entry | undefined {
    return this.#entries.values().find(({ state }) => state === "queued");
  }

  /** Returns at most `limit` tasks, newest first. */
  page({ limit, state, owner, before = Infinity }: ListQuery): ListedTask[] {
    const wanted = [...this.#entries.values()].filter(
      (entry) =>
        entry.listed === 1 &&
        entry.seq < before &&
        (state ?? entry.state) === entry.state &&
        (owner ?? entry.owner) === entry.owner,
    );
    return wanted.slice(-limit).toReversed();
  }

  /** Returns the result of `storedFiles` as its contract says. */
  storedFiles({ limit, after }: StoredFilesQuery): StoredFiles {
    const files = [...this.#entries.values()].filter(({ bytes }) => bytes > 0).map(toFile);
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    const later = files.filter((file) => after === undefined || byFinish(file, after) > 0);
    return { bytes, oldest: later.toSorted(byFinish).slice(0, limit) };
  }

  /** Returns the task of the owner whose turn it is at `nowMs`; its host is not excepted. */
  nextInTurn(nowMs: number, exceptHosts: readonly string[]): Entry | undefined {
    const active = [...this.#owners.values()].filter(({ queued, running }) => queued + running > 0);
    for (const { name, running } of active.toSorted(byTurn)) {
      const { max_running: most = Infinity } = this.#limitsOf(name) ?? {};
      const next = this.#entries
        .values()
        .find(
          ({ owner, state, host, claimableAtMs }) =>
            (owner ?? "") === name &&
            (state === "running" || running < most) &&
            claimableAtMs <= nowMs &&
            !exceptHosts.includes(host),
        );
      if (next !== undefined) return next;
    }
    return undefined;
  }

  /** Puts the owner after the others that run as many tasks. */
  markClaim({ owner }: Entry): void {
    this.#lastClaim += 1;
    this.#ownerOf(owner).claimed = this.#lastClaim;
  }

  /** Returns how many more tasks of the owner may be queued. */
  queueRoom(owner: string | null): number {
    const quota = this.#quotaOf(owner);
    return quota === undefined ? this.#free() : queueRoom(quota, this.#free());
  }

  /** Returns how many places of the queue are free. */
  #free(): number {
    return this.#maxQueued - this.counts.queued;
  }

  /** Returns undefined if the owner has no key. */
  #quotaOf(owner: string | null): Quota | undefined {
    const limits = this.#limitsOf(owner ?? "");
    return limits && { limits, use: this.#ownerOf(owner) };
  }

  /** Returns how many bytes the limits of the owner leave; undefined: any number. */
  bytesLeft({ owner }: Entry): number | undefined {
    const quota = this.#quotaOf(owner);
    return quota && bytesLeft(quota);
  }

  clear(): void {
    this.#entries.clear();
    this.#ids.clear();
  }
}

/** Sorts owners as the contract of `claim` says. */
function byTurn(one: Owner, other: Owner): number {
  const order = one.running - other.running || one.claimed - other.claimed;
  return order || (one.name < other.name ? -1 : 1);
}

function toFile({ id, seq, bytes, finishedAt }: Entry): StoredFile {
  return { id, seq, bytes, finishedAt: finishedAt ?? "" };
}

function byFinish(one: StoredFile, other: StoredFile): number {
  if (one.finishedAt === other.finishedAt) return one.seq - other.seq;
  return one.finishedAt < other.finishedAt ? -1 : 1;
}
