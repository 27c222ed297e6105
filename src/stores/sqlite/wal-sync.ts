import { type FileHandle, open } from "node:fs/promises";
import type { DatabaseSync } from "node:sqlite";
import { ServiceError } from "../../errors.ts";

/** Puts the write-ahead log of a database on the disk, without holding up this thread. */
export interface WalSync {
  /**
   * All that was committed before the call; one call at a time.
   *
   * @throws ServiceError `unavailable`; what was committed may be lost with the power, and the next call
   * begins with moving it into the database.
   */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** For a database at `path` that leaves flushing its log to others (`synchronous = NORMAL`). */
export function createWalSync(db: DatabaseSync, path: string): WalSync {
  let log: FileHandle | undefined;
  /** The system may have dropped what it could not write, and not say so again. */
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
