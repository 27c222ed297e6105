import { parseKey } from "../key-store.ts";
import {
  addUse,
  assertQuota,
  bytesLeft,
  type Counted,
  noUse,
  type OwnerUse,
  type Quota,
  freeInQueue,
  useChange,
} from "../quotas.ts";
import type { Statements } from "./statements.ts";

/** The key as JSON; null: the owner has none. */
interface UseRow extends OwnerUse {
  key: string | null;
}

const noKey: UseRow = { key: null, ...noUse };

/** Null: the owner has no key, and so no limits. */
interface KnownQuota {
  use: OwnerUse;
  limits: Quota["limits"] | null;
}

/**
 * The table `owners`. Changes are written before a transaction reads the table, and before its commit. Changes of
 * `queued` alone wait for a later transaction, and the opening of the database counts queued tasks again. Call the
 * methods inside a transaction; if it is rolled back, call the function that `mark` returned at its start.
 */
export class OwnerTable {
  readonly #sql: Statements;
  /** Changes that the table does not have yet, by owner; '' has the tasks without an owner. */
  #pending = new Map<string, OwnerUse>();
  /** Of the owners whose tasks have changed since a key changed, or a transaction was rolled back. */
  readonly #quotas = new Map<string, KnownQuota>();
  /** Only grows: the number of a claim that is rolled back is not used again. */
  #claimed: number;

  constructor(sql: Statements) {
    this.#sql = sql;
    ({ claimed: this.#claimed } = sql.lastClaim.get() as { claimed: number });
  }

  /** Writes the pending changes. Call it before other statements read the table. */
  writePending(): void {
    for (const [owner, { queued, running, bytes, records }] of this.#pending)
      this.#sql.countOwner.run(owner, queued, running, bytes, records);
    this.#pending.clear();
  }

  /** Call it before each commit. */
  complete(): void {
    const changes = this.#pending.values();
    if (changes.some(({ running, bytes, records }) => running !== 0 || bytes !== 0 || records !== 0))
      this.writePending();
  }

  /**
   * Counts the change of a task.
   *
   * @param free Free places of the queue before it.
   * @throws ServiceError `quota_exceeded`
   */
  count(owner: string | null, before: Counted, after: Counted, free: number): void {
    const change = useChange(before, after);
    if (change === noUse) return;
    const name = owner ?? "";
    this.#pending.set(name, addUse(this.#pending.get(name) ?? noUse, change));
    if (owner === null) return;
    const known = this.#quotas.get(owner);
    const quota = known === undefined ? this.#readQuota(owner) : { ...known, use: addUse(known.use, change) };
    this.#quotas.set(owner, quota);
    if (hasKey(quota)) assertQuota(quota, free, before, after);
  }

  #readQuota(owner: string): KnownQuota {
    this.writePending();
    const { key, ...use } = (this.#sql.useOfOwner.get(owner) ?? noKey) as unknown as UseRow;
    return { use, limits: key === null ? null : parseKey(key).limits };
  }

  /** Returns how many bytes the limits of the owner leave; undefined: any number. */
  bytesLeft(owner: string | null): number | undefined {
    if (owner === null) return undefined;
    const quota = this.#quotas.get(owner) ?? this.#readQuota(owner);
    return hasKey(quota) ? bytesLeft(quota) : undefined;
  }

  /** Returns how many more tasks of the owner may be queued while so many places are free. */
  freeInQueue(owner: string | null, free: number): number {
    if (owner === null) return free;
    const quota = this.#quotas.get(owner) ?? this.#readQuota(owner);
    return hasKey(quota) ? freeInQueue(quota, free) : free;
  }

  /** Puts the owner after the others that run as many tasks. */
  markClaim(owner: string | null): void {
    this.writePending();
    this.#claimed += 1;
    this.#sql.markClaim.run(this.#claimed, owner ?? "");
  }

  /** Returns how many bytes the files of all tasks have together. */
  storedBytes(): number {
    this.writePending();
    return (this.#sql.storedBytes.get() as { bytes: number }).bytes;
  }

  /** Call it in the transaction in which a key changes. */
  forgetQuotas(): void {
    this.#quotas.clear();
  }

  /** Returns a function that undoes what the methods have done since. */
  mark(): () => void {
    const before = new Map(this.#pending);
    return () => {
      this.#pending = before;
      this.#quotas.clear();
    };
  }
}

function hasKey(quota: KnownQuota): quota is Quota {
  return quota.limits !== null;
}
