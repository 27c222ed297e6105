import type { KeyLimits } from "../../access-key.ts";
import { parseKey } from "../key-store.ts";
import { addUse, assertQuota, type Counted, noUse, type OwnerUse, useChange } from "../quotas.ts";
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
 * The table `owners`. Changes wait until the transaction reads the table or ends: it may create many tasks of one
 * owner, and the row of each would be written as often. Call the methods inside a transaction; if it is rolled back,
 * call the function that `mark` returned at its start.
 */
export function createOwnerTable(sql: Statements) {
  /** Changes that are not in the table yet, by owner; '' has the tasks of nobody. */
  let waiting = new Map<string, OwnerUse>();

  /** Of the owners whose tasks have changed since a key changed, or a transaction was rolled back. */
  const quotas = new Map<string, Quota>();

  /** Only grows: the number of a claim that is rolled back is not used again. */
  let { claimed } = sql.lastClaim.get() as { claimed: number };

  function write(): void {
    for (const [owner, { queued, running, bytes }] of waiting)
      sql.countOwner.run(owner, queued, running, bytes);
    waiting.clear();
  }

  function readQuota(owner: string): Quota {
    write();
    const { key, ...use } = (sql.useOfOwner.get(owner) ?? noKey) as unknown as UseRow;
    return { use, limits: key === null ? {} : parseKey(key).limits };
  }

  return {
    /** Writes the changes that wait. Call it before other statements read the table, and before each commit. */
    write,

    /**
     * Counts the change of a task.
     *
     * @throws ServiceError `quota_exceeded`
     */
    count(owner: string | null, before: Counted, after: Counted): void {
      const change = useChange(before, after);
      if (change === noUse) return;
      waiting.set(owner ?? "", addUse(waiting.get(owner ?? "") ?? noUse, change));
      if (owner === null) return;
      const known = quotas.get(owner);
      const quota =
        known === undefined ? readQuota(owner) : { ...known, use: addUse(known.use, change) };
      quotas.set(owner, quota);
      assertQuota(quota.limits, quota.use, before, after);
    },

    /** Puts the owner behind the others that run as many tasks. */
    markClaim(owner: string | null): void {
      write();
      claimed += 1;
      sql.markClaim.run(claimed, owner ?? "");
    },

    /** Returns how many bytes the files of all tasks have together. */
    storedBytes(): number {
      write();
      const { bytes } = sql.storedBytes.get() as { bytes: number };
      return bytes;
    },

    /** Call it in the transaction in which a key changes. */
    forgetQuotas: () => quotas.clear(),

    /** Returns a function that forgets the changes since. */
    mark() {
      const before = new Map(waiting);
      return () => {
        waiting = before;
        quotas.clear();
      };
    },
  };
}
