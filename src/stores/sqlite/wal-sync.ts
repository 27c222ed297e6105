import { type FileHandle, open } from "node:fs/promises";
import type { DatabaseSync } from "node:sqlite";
import { messageOf, ServiceError } from "../../model/errors.ts";

/**
 * Creates what syncs the write-ahead log of the database at `path` to the disk without blocking this thread; the database does not
 * sync its log itself (`synchronous = NORMAL`).
 */
export function createWalSync(db: DatabaseSync, path: string) {
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
    /**
     * Syncs everything committed before the call; one call at a time.
     *
     * @throws ServiceError `unavailable` if that fails: power loss may undo these commits until a later call,
     * which first moves the log into the database, succeeds.
     */
    async flush(): Promise<void> {
      try {
        await flushLog();
      } catch (cause) {
        isDoubtful = true;
        const reason = messageOf(cause);
        throw new ServiceError("unavailable", `the task store could not be flushed: ${reason}`, {
          cause,
        });
      }
    },
    async close(): Promise<void> {
      await log?.close();
    },
  };
}
