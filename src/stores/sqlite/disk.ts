import { randomBytes } from "node:crypto";
import { realpathSync, statSync } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { BaseLogger } from "pino";
import { messageOf, ServiceError } from "../../model/errors.ts";

export type Disk = ReturnType<typeof openDisk>;

/** Opens what watches and syncs the files of the database at `path`, which has just been opened. */
export function openDisk(db: DatabaseSync, path: string, logger: DiskLogger | undefined) {
  const realPath = realpathSync(path); // SQLite has the log next to it.
  const wal = createWalSync(db, realPath);
  const space = createSpaceProbe(realPath);
  return {
    check: createFileCheck(db, path, logger),
    flush: wal.flush,
    checkSpace: space.check,
    async close(): Promise<void> {
      await space.close();
      await wal.close();
    },
  };
}

type DiskLogger = Pick<BaseLogger, "info" | "error">;

/**
 * Returns a function that checks that the database at `path`, which has just been opened, and its write-ahead
 * log are still the files that these paths lead to; it logs when that changes. It throws ServiceError
 * `unavailable` if they are not, if that cannot be found out, or if the database has become shorter, which SQLite itself never makes it:
 * nobody could open what would be written.
 */
function createFileCheck(db: DatabaseSync, path: string, logger: DiskLogger | undefined): () => void {
  const file = resolve(path);
  const names = [file, `${realpathSync(file)}-wal`];
  const files = names.map((name) => ({ name, id: identityOf(name) }));
  let isLost = false;
  let { size } = statSync(file, { bigint: true });

  /** Moves the log into the database, which saves what it has if it alone is lost. */
  function saveLog(): void {
    try {
      db.exec("PRAGMA wal_checkpoint");
    } catch (err) {
      logger?.error({ err }, "the write-ahead log could not be moved into the database");
    }
  }

  /** Returns what has become of the files; undefined: they are as they were. */
  function findLoss(): Loss | undefined {
    try {
      const lost = files.find(({ name, id }) => identityOf(name) !== id);
      if (lost !== undefined) return { name: lost.name, what: "was removed, moved or replaced", isGone: true };
      const sizeNow = statSync(file, { bigint: true }).size;
      if (sizeNow < size) return { name: file, what: "was cut short" };
      size = sizeNow;
      return undefined;
    } catch (error) {
      return { name: file, what: `could not be found (${messageOf(error)})` };
    }
  }

  return () => {
    const loss = findLoss();
    if (loss !== undefined) {
      const error = fileLostError(loss);
      if (!isLost) logger?.error({ file: loss.name }, error.message);
      if (!isLost && loss.isGone) saveLog();
      isLost = true;
      throw error;
    }
    if (isLost) logger?.info({ file }, "the task store's file is back; tasks are stored again");
    isLost = false;
  };
}

interface Loss {
  name: string;
  what: string;
  isGone?: true;
}

const statOptions = { bigint: true, throwIfNoEntry: false } as const;

/** Returns undefined if there is no such file. No other file gets this identity while this one is open. */
function identityOf(path: string): string | undefined {
  const found = statSync(path, statOptions);
  return found && `${found.dev}:${found.ino}`;
}

function fileLostError({ name, what }: Loss): ServiceError {
  return new ServiceError(
    "unavailable",
    `the task store's file ${name} ${what} while in use: ` +
      "tasks can be read, but not stored, until it is put back or a restart opens what is there then",
  );
}

/** More than the pages that the largest new task, with an idempotency key, adds to the write-ahead log. */
const probeBytes = 128 * 1024;

/** Creates what checks that the disk of the database has space for a task. */
function createSpaceProbe(path: string) {
  // A file system that compresses cannot make less of it.
  const bytes = randomBytes(probeBytes);
  let file: FileHandle | undefined;

  async function openUnnamed(): Promise<FileHandle> {
    const name = `${path}-probe`;
    await rm(name, { force: true });
    const opened = await open(name, "wx");
    await rm(name);
    return opened;
  }

  return {
    /**
     * Writes as much as a task needs to a file without a name next to the database, and frees it again.
     *
     * @throws ServiceError `unavailable`
     */
    async check(): Promise<void> {
      try {
        file ??= await openUnnamed();
        try {
          // A disk that gets full takes a part of the bytes and refuses the next call.
          for (let at = 0; at < bytes.length;) {
            at += (await file.write(bytes, at, bytes.length - at, at)).bytesWritten;
          }
          await file.datasync();
        } finally {
          await file.truncate();
        }
      } catch (cause) {
        const reason = messageOf(cause);
        const message = `the task store cannot write ${probeBytes} bytes, as a task may need: ${reason}`;
        throw new ServiceError("unavailable", message, { cause });
      }
    },
    async close(): Promise<void> {
      await file?.close();
      file = undefined;
    },
  };
}

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
