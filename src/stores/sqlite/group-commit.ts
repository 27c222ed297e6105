import type { DatabaseSync } from "node:sqlite";
import { ServiceError } from "../../errors.ts";

export interface GroupCommit {
  /**
   * Runs `write` in the next transaction, after those that were asked for before it. Resolves with
   * what it gave once that transaction is on the disk.
   *
   * Where flushing the log fails, its writes are rejected and yet stay: they may be lost with the power.
   *
   * What `write` throws undoes `write` alone and rejects its promise; its neighbours are then run
   * again, so a `write` does nothing but read and write the database. Where the transaction itself
   * fails, everything in it is undone and rejected with `unavailable`; the next one starts afresh.
   */
  run<T>(write: () => T): Promise<T>;
  /** Runs now what `run` has accepted so far; resolves once its promises have settled. */
  finish(): Promise<void>;
}

interface Job {
  /** Gives what to do once the write is on the disk. */
  perform(): () => void;
  reject(error: unknown): void;
}

/** A write that is committed, and may not be on the disk yet. */
interface Committed {
  settle(): void;
  reject(error: unknown): void;
}

/**
 * One transaction for all the writes that arrive in one turn of the event loop, and one wait for the disk,
 * `flushLog`, for all that were committed during the wait before it. `mark` is for what writes keep
 * beside the database: it gives a function that brings that back to what it is now, which is called
 * where the writes since then are undone.
 */
export function createGroupCommit(
  db: DatabaseSync,
  flushLog: () => Promise<void>,
  mark = () => () => {},
): GroupCommit {
  let waiting: Job[] = [];
  let committed: Committed[] = [];
  let flushing: Promise<void> | undefined;
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const rollback = db.prepare("ROLLBACK");
  const save = db.prepare("SAVEPOINT job");
  const keep = db.prepare("RELEASE job");
  const undo = db.prepare("ROLLBACK TO job");

  function commitWaiting(): void {
    const jobs = waiting;
    waiting = [];
    if (jobs.length === 0) return;
    // Savepoints cost as much as a tenth of the work, and a job hardly ever needs its own.
    if (commitAll(jobs, (job) => job.perform()) !== undefined) {
      const failure = commitAll(jobs, attempt);
      if (failure !== undefined) for (const job of jobs) job.reject(failure);
    }
    if (committed.length > 0) flushing ??= settleCommitted();
  }

  /** Never rejects. */
  async function settleCommitted(): Promise<void> {
    while (committed.length > 0) {
      const writes = committed;
      committed = [];
      try {
        await flushLog();
        for (const { settle } of writes) settle();
      } catch (error) {
        for (const { reject } of writes) reject(error);
      }
    }
    flushing = undefined;
  }

  /** Performs the jobs in one transaction; where that fails, undoes all and gives the reason. */
  function commitAll(jobs: readonly Job[], perform: (job: Job) => () => void): unknown {
    const restore = mark();
    try {
      begin.run();
      const settlements = jobs.map((job) => ({ settle: perform(job), reject: job.reject }));
      commit.run();
      committed.push(...settlements);
      return undefined;
    } catch (error) {
      restore();
      if (db.isTransaction) rollback.run();
      return toStoreError(error);
    }
  }

  function attempt(job: Job): () => void {
    const restore = mark();
    save.run();
    try {
      const settle = job.perform();
      keep.run();
      return settle;
    } catch (error) {
      // A full disk or a failed write ends the whole transaction, the neighbours' work included.
      if (!db.isTransaction) throw error;
      restore();
      undo.run();
      keep.run();
      return () => job.reject(toStoreError(error));
    }
  }

  return {
    run<T>(write: () => T) {
      return new Promise<T>((resolve, reject) => {
        if (waiting.length === 0) setImmediate(commitWaiting);
        waiting.push({
          perform() {
            const value = write();
            return () => resolve(value);
          },
          reject,
        });
      });
    },
    async finish() {
      commitWaiting();
      await flushing;
    },
  };
}

/** SQLite's own errors as the contract's `unavailable`; all others as they are. */
export function toStoreError(error: unknown): unknown {
  if (!(error instanceof Error) || !("errcode" in error)) return error;
  return new ServiceError("unavailable", `the task store failed: ${error.message}`, {
    cause: error,
  });
}
