import { realpathSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import type { BaseLogger } from "pino";
import type { TaskEventPublisher } from "../../feed/task-events.ts";
import type { JobRunner } from "../local-writes.ts";
import { storeClosedError } from "../rules.ts";
import { createFileCheck, createSpaceProbe } from "./file-check.ts";
import { createGroupCommit, type GroupCommitHooks, toStoreError } from "./group-commit.ts";
import type { Statements } from "./statements.ts";
import { type FileHandle, open } from "node:fs/promises";
import { messageOf, ServiceError } from "../../model/errors.ts";

/** How jobs run on the open database: those that write as `GroupCommit.run`. All reject with `unavailable` once it is closed. */
export interface Transactions extends JobRunner {
  /** Runs a job at once; it sees writes that are not on the disk yet. */
  read<T>(job: () => T): Promise<T>;
  /** Rejects unless a task can be stored now; calls at the same time share one probe. */
  ping(): Promise<void>;
  /** Lets accepted jobs finish, then closes the database. */
  close(): Promise<void>;
}

interface TransactionsOptions extends GroupCommitHooks {
  db: DatabaseSync;
  path: string;
  sql: Statements;
  events: TaskEventPublisher;
  logger: Pick<BaseLogger, "info" | "error"> | undefined;
}

export function createTransactions(options: TransactionsOptions): Transactions {
  const { db, path, sql, events, logger, ...hooks } = options;
  const realPath = realpathSync(path); // SQLite has the log next to it.
  const wal = createWalSync(db, realPath);
  const check = createFileCheck(db, path, logger);
  const space = createSpaceProbe(realPath);
  const commits = createGroupCommit(db, wal.flush, { ...hooks, check });
  let pinging: Promise<void> | undefined;
  let closed: Promise<void> | undefined;

  function assertOpen(): void {
    if (closed !== undefined) throw storeClosedError("sqlite");
  }

  async function write<T>(job: () => T): Promise<T> {
    assertOpen();
    return commits.run(job);
  }

  /** The space first: on a full disk the write of each probe would use up what is freed. */
  async function ping(): Promise<void> {
    assertOpen();
    check();
    await space.check();
    await write(() => void sql.probe.run());
  }

  async function finish(): Promise<void> {
    await commits.finish();
    await space.close();
    await wal.close();
    db.close();
  }

  return {
    async read(job) {
      assertOpen();
      try {
        return job();
      } catch (error) {
        throw toStoreError(error);
      }
    },
    write,
    async change(job, owner) {
      assertOpen();
      const { result, events: changes = [] } = await commits.run(job, owner);
      for (const event of changes) events.publish(event);
      return result;
    },
    ping: () =>
      (pinging ??= ping().finally(() => {
        pinging = undefined;
      })),
    close: () => (closed ??= finish()),
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
