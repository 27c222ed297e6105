import type { KeyLimits } from "../../model/access-key.ts";
import { parseKey } from "../key-store.ts";
import {
  addUse,
  assertQuota,
  bytesLeft,
  type Counted,
  noUse,
  type OwnerUse,
  useChange,
} from "../quotas.ts";
import type { Statements } from "./statements.ts";

/** The key as JSON; null: the owner has none, and so no limits. */
interface UseRow extends OwnerUse {
  key: string | null;
}

const noKey: UseRow = { key: null, ...noUse };

/** What an owner uses of the limits of its key. */
interface Quota {
  use: OwnerUse;
  limits: KeyLimits;
}

/**
 * The table `owners`. Changes are written before a transaction reads the table, and before its commit. Changes of
 * `queued` alone wait for a later transaction, and the opening of the database counts queued tasks again. Call the
 * methods inside a transaction; if it is rolled back, call the function that `mark` returned at its start.
 */
export function createOwnerTable(sql: Statements) {
  /** Changes that the table does not have yet, by owner; '' has the tasks of nobody. */
  let pending = new Map<string, OwnerUse>();

  /** Of the owners whose tasks have changed since a key changed, or a transaction was rolled back. */
  const quotas = new Map<string, Quota>();

  /** Only grows: the number of a claim that is rolled back is not used again. */
  let { claimed } = sql.lastClaim.get() as { claimed: number };

  function writePending(): void {
    for (const [owner, { queued, running, bytes }] of pending)
      sql.countOwner.run(owner, queued, running, bytes);
    pending.clear();
  }

  function readQuota(owner: string): Quota {
    writePending();
    const { key, ...use } = (sql.useOfOwner.get(owner) ?? noKey) as unknown as UseRow;
    return { use, limits: key === null ? {} : parseKey(key).limits };
  }

  return {
    /** Writes the pending changes. Call it before other statements read the table. */
    writePending,

    /** Call it before each commit. */
    complete() {
      const changes = pending.values();
      if (changes.some(({ running, bytes }) => running !== 0 || bytes !== 0)) writePending();
    },

    /**
     * Counts the change of a task.
     *
     * @throws ServiceError `quota_exceeded`
     */
    count(owner: string | null, before: Counted, after: Counted): void {
      const change = useChange(before, after);
      if (change === noUse) return;
      pending.set(owner ?? "", addUse(pending.get(owner ?? "") ?? noUse, change));
      if (owner === null) return;
      const known = quotas.get(owner);
      const quota =
        known === undefined ? readQuota(owner) : { ...known, use: addUse(known.use, change) };
      quotas.set(owner, quota);
      assertQuota(quota.limits, quota.use, before, after);
    },

    /** Returns how many bytes the limits of the owner leave; undefined: any number. */
    bytesLeft(owner: string | null): number | undefined {
      if (owner === null) return undefined;
      const { limits, use } = quotas.get(owner) ?? readQuota(owner);
      return bytesLeft(limits, use);
    },

    /** Puts the owner behind the others that run as many tasks. */
    markClaim(owner: string | null): void {
      writePending();
      claimed += 1;
      sql.markClaim.run(claimed, owner ?? "");
    },

    /** Returns how many bytes the files of all tasks have together. */
    storedBytes(): number {
      writePending();
      const { bytes } = sql.storedBytes.get() as { bytes: number };
      return bytes;
    },

    /** Call it in the transaction in which a key changes. */
    forgetQuotas: () => quotas.clear(),

    /** Returns a function that undoes what the methods have done since. */
    mark() {
      const before = new Map(pending);
      return () => {
        pending = before;
        quotas.clear();
      };
    },
  };
}
