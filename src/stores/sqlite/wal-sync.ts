import { type FileHandle, open } from "node:fs/promises";
import type { DatabaseSync } from "node:sqlite";
import { ServiceError } from "../../model/errors.ts";

/** Syncs the write-ahead log of a database to the disk without blocking this thread. */
export interface WalSync {
  /**
   * Syncs everything committed before the call; one call at a time.
   *
   * @throws ServiceError `unavailable` if that fails: power loss may undo these commits until a later call,
   * which first moves the log into the database, succeeds.
   */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Creates it for a database at `path` that does not sync its log itself (`synchronous = NORMAL`). */
export function createWalSync(db: DatabaseSync, path: string): WalSync {
  let log: FileHandle | undefined;
  /** After a failed sync the system may have dropped the data, and reports that only once. */
  let isDoubtful = false;

  async function flushLog(): Promise<void> {
    if (isDoubtful) db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    isDoubtful = false;
    log ??= await open(`${path}-wal`, "r+");
    await log.datasync();
  }

  return {
    async flush() {
      try {
        await flushLog();
      } catch (cause) {
        isDoubtful = true;
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new ServiceError("unavailable", `the task store could not be flushed: ${reason}`, {
          cause,
        });
      }
    },
    async close() {
      await log?.close();
    },
  };
}
