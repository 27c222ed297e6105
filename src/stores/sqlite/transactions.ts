import type { DatabaseSync } from "node:sqlite";
import type { TaskEvent, TaskEventPublisher } from "../../feed/task-events.ts";
import { storeClosedError } from "../rules.ts";
import type { Disk } from "./disk.ts";
import { createGroupCommit, type GroupCommitHooks, toStoreError } from "./group-commit.ts";
import type { Statements } from "./statements.ts";

/** What a job returns, and the changes that it made. */
export interface Changed<T> {
  result: T;
  events?: readonly TaskEvent[];
}

export type Transactions = ReturnType<typeof createTransactions>;

interface TransactionsOptions extends Pick<GroupCommitHooks, "mark" | "complete"> {
  db: DatabaseSync;
  /** Undefined: the database is in memory. */
  disk: Disk | undefined;
  sql: Statements;
  events: TaskEventPublisher;
}

/** Creates what runs jobs on an open database, those that write as `GroupCommit.run`. All reject with `unavailable` once it is closed. */
export function createTransactions({ db, disk, sql, events, ...hooks }: TransactionsOptions) {
  const { flush = async () => {}, check = () => {} } = disk ?? {};
  const commits = createGroupCommit(db, flush, { ...hooks, check });
  let pinging: Promise<void> | undefined;
  let closed: Promise<void> | undefined;

  function assertOpen(): void {
    if (closed !== undefined) throw storeClosedError(disk === undefined ? "memory" : "sqlite");
  }

  function attempt<T>(job: () => T): T {
    assertOpen();
    try {
      return job();
    } catch (error) {
      throw toStoreError(error);
    }
  }

  /** Runs a job in a transaction: maybe later than it is given, and maybe twice. */
  async function write<T>(job: () => T): Promise<T> {
    assertOpen();
    return commits.run(job);
  }

  /** The space first: on a full disk the write of each probe would use up what is freed. */
  async function ping(): Promise<void> {
    assertOpen();
    disk?.check();
    await disk?.checkSpace();
    await write(() => void sql.probe.run());
  }

  async function finish(): Promise<void> {
    await commits.finish();
    await disk?.close();
    db.close();
  }

  return {
    /** Runs a job at once; it sees writes that are not on the disk yet. */
    read: async <T>(job: () => T): Promise<T> => attempt(job),
    write,
    /** As `write`, and publishes the changes, in the order of the transactions. Owners take turns: of each, the jobs run in their order. */
    async change<T>(job: () => Changed<T>, findOwner: () => string | undefined = () => undefined): Promise<T> {
      const { result, events: changes = [] } = await commits.run(job, attempt(findOwner));
      for (const event of changes) events.publish(event);
      return result;
    },
    /** Rejects unless a task can be stored now; calls at the same time share one probe. */
    ping: (): Promise<void> =>
      (pinging ??= ping().finally(() => {
        pinging = undefined;
      })),
    /** Lets accepted jobs finish, then closes the database. */
    close: (): Promise<void> => (closed ??= finish()),
  };
}
