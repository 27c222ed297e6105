import type { DatabaseSync } from "node:sqlite";
import { Rotation } from "../../async/rotation.ts";
import { ServiceError } from "../../model/errors.ts";
import { StoreDiskFullError } from "../rules.ts";

interface GroupCommit {
  /**
   * Runs `write` in the next transaction, after the writes that were requested before it for the same owner; owners take turns, so
   * that nobody waits until the many writes of another are done. Resolves to its result once that transaction is on the disk;
   * promises resolve in the order of the writes.
   *
   * An error that `write` throws rolls back this write alone and rejects its promise. The other writes of
   * the transaction then run a second time, so a `write` must do nothing but read and write the database.
   * If the transaction itself fails, all of it is rolled back and rejected with `unavailable`. If only the
   * sync of the disk fails, its writes are rejected but stay: power loss may undo them.
   *
   * @param owner Default: one for all writes without.
   */
  run<T>(write: () => T, owner?: string): Promise<T>;
  /** Runs the accepted writes now; resolves once their promises have settled. */
  finish(): Promise<void>;
}

interface Write {
  /** Returns the function to call once the write is on the disk. */
  perform(): () => void;
  reject(error: unknown): void;
}

/** A write that is committed but may not be on the disk yet. */
interface Committed {
  settle(): void;
  reject(error: unknown): void;
}

export interface GroupCommitHooks {
  /**
   * Called before writes; returns a function that resets state kept outside the database, which is called if
   * these writes are rolled back.
   */
  mark?: () => () => void;
  /** Called after the writes of each transaction; if it throws, none of them is committed. */
  complete?: () => void;
  /** Called before each transaction; if it throws, all writes of the transaction reject with its error. */
  check?: () => void;
}

/** Most writes of one transaction. */
const maxJobs = 100;

/** After this time a transaction takes no further write, milliseconds: those of long records take 5 ms each. */
const maxMs = 10;

/**
 * Commits the writes of one turn of the event loop in one transaction, of many the first ones in turn, and syncs the disk (`flush`) once
 * for all transactions committed during the previous sync.
 */
export function createGroupCommit(
  db: DatabaseSync,
  flush: () => Promise<void>,
  hooks: GroupCommitHooks = {},
): GroupCommit {
  const commit = createCommitter(db, hooks);
  const waiting = new Rotation<Write>();
  let committed: Committed[] = [];
  let flushing: Promise<void> | undefined;

  function commitWaiting(): void {
    if (waiting.isEmpty) return;
    const taken: Write[] = [];
    const take = () => takeNext(waiting, taken);
    try {
      committed.push(...commit(taken, take));
    } catch (error) {
      while (take() !== undefined);
      for (const { reject } of taken) reject(error);
    }
    if (!waiting.isEmpty) setImmediate(commitWaiting);
    if (committed.length > 0) flushing ??= settleCommitted();
  }

  /** Never rejects. */
  async function settleCommitted(): Promise<void> {
    while (committed.length > 0) {
      const writes = committed;
      committed = [];
      try {
        await flush();
        for (const { settle } of writes) settle();
      } catch (error) {
        for (const { reject } of writes) reject(error);
      }
    }
    flushing = undefined;
  }

  return {
    run<T>(write: () => T, owner = "") {
      return new Promise<T>((resolve, reject) => {
        if (waiting.isEmpty) setImmediate(commitWaiting);
        waiting.add(owner, {
          perform() {
            const value = write();
            return () => resolve(value);
          },
          reject,
        });
      });
    },
    async finish() {
      while (!waiting.isEmpty) commitWaiting();
      await flushing;
    },
  };
}

/** Takes the next job of a transaction that has taken these; undefined: none waits, or it has enough. */
function takeNext(waiting: Rotation<Write>, taken: Write[]): Write | undefined {
  const job = taken.length < maxJobs ? waiting.take() : undefined;
  if (job !== undefined) taken.push(job);
  return job;
}

/**
 * Returns a function that commits in one transaction the jobs that it takes, the first one and as many more as there is time for, without
 * those that throw; returns what became of them. If the transaction itself fails, all is rolled back, and it throws.
 */
function createCommitter(
  db: DatabaseSync,
  { mark = () => () => {}, complete = () => {}, check = () => {} }: GroupCommitHooks,
) {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const rollback = db.prepare("ROLLBACK");
  const save = db.prepare("SAVEPOINT job");
  const keep = db.prepare("RELEASE job");
  const undo = db.prepare("ROLLBACK TO job");

  function commitAll(performAll: () => Committed[]): Committed[] {
    const restore = mark();
    try {
      check();
      begin.run();
      const committed = performAll();
      complete();
      commit.run();
      return committed;
    } catch (error) {
      restore();
      if (db.isTransaction) rollback.run();
      throw toStoreError(error);
    }
  }

  /** Performs a job; if it throws, undoes what it has done. */
  function attempt({ perform, reject }: Write): Committed {
    const restore = mark();
    save.run();
    try {
      const settle = perform();
      keep.run();
      return { settle, reject };
    } catch (error) {
      // A full disk or a failed write ends the transaction, with the work of the other jobs.
      if (!db.isTransaction) throw error;
      restore();
      undo.run();
      keep.run();
      return { settle: () => reject(toStoreError(error)), reject };
    }
  }

  /** @param taken What `take` has returned. */
  return (taken: readonly Write[], take: () => Write | undefined): Committed[] => {
    try {
      // Without savepoints, which cost a tenth of the work; few jobs fail.
      return commitAll(() => performInTime(take));
    } catch {
      return commitAll(() => taken.map(attempt));
    }
  };
}

function performInTime(take: () => Write | undefined): Committed[] {
  const endMs = performance.now() + maxMs;
  const performed: Committed[] = [];
  for (let job = take(); job !== undefined; job = performance.now() < endMs ? take() : undefined) {
    performed.push({ settle: job.perform(), reject: job.reject });
  }
  return performed;
}

/** SQLITE_FULL, and SQLITE_IOERR, which it is if a quota of the disk is used up (https://sqlite.org/rescode.html). */
const fullCodes: ReadonlySet<number> = new Set([13, 10]);

/** Turns SQLite's errors into `unavailable`; returns others unchanged. */
export function toStoreError(error: unknown): unknown {
  if (!(error instanceof Error) || !("errcode" in error)) return error;
  if (fullCodes.has(Number(error.errcode) & 0xff)) return new StoreDiskFullError(error);
  return new ServiceError("unavailable", `the task store failed: ${error.message}`, {
    cause: error,
  });
}
