import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { BaseLogger } from "pino";
import { ServiceError } from "../../model/errors.ts";

/**
 * Returns a function that checks that the database at `path`, which has just been opened, and its write-ahead
 * log are still the files that these paths lead to; it logs when that changes. It throws ServiceError
 * `unavailable` if they are not, as nobody could open what would be written.
 */
export function createFileCheck(
  db: DatabaseSync,
  path: string,
  logger: Pick<BaseLogger, "info" | "error"> | undefined,
): () => void {
  const file = resolve(path);
  const names = [file, `${realpathSync(file)}-wal`];
  const files = names.map((name) => ({ name, id: identityOf(name) }));
  let isLost = false;

  /** Moves the log into the database, which saves what it has if it alone is lost. */
  function saveLog(): void {
    try {
      db.exec("PRAGMA wal_checkpoint");
    } catch (err) {
      logger?.error({ err }, "the write-ahead log could not be moved into the database");
    }
  }

  return () => {
    const lost = files.find(({ name, id }) => identityOf(name) !== id);
    if (lost !== undefined) {
      const error = fileLostError(lost.name);
      if (!isLost) logger?.error({ file: lost.name }, error.message);
      if (!isLost) saveLog();
      isLost = true;
      throw error;
    }
    if (isLost) logger?.info({ file }, "the task store's file is back; tasks are stored again");
    isLost = false;
  };
}

const statOptions = { bigint: true, throwIfNoEntry: false } as const;

/** Returns undefined if there is no such file. No other file gets this identity while this one is open. */
function identityOf(path: string): string | undefined {
  const found = statSync(path, statOptions);
  return found && `${found.dev}:${found.ino}`;
}

function fileLostError(name: string): ServiceError {
  return new ServiceError(
    "unavailable",
    `the task store's file ${name} was removed, moved or replaced while in use: ` +
      "tasks can be read, but not stored, until it is put back or a restart opens what is there then",
  );
}
