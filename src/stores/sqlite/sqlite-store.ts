import type { DatabaseSync } from "node:sqlite";
import type { BaseLogger } from "pino";
import { WindowSums } from "../../async/window-sums.ts";
import { createTaskEvents } from "../../feed/task-events.ts";
import { createClock } from "../clock.ts";
import { KeyAllowance } from "../quotas.ts";
import { createDamageReport, type DamageReport, type ListedTask, parseTask, toPage } from "../documents.ts";
import { defaultMaxQueued } from "../rules.ts";
import type { StoreOptions, TaskReads, TaskStore } from "../store.ts";
import { createDatabase, endImpossibleDelays, openDatabase, suspectRows } from "./database.ts";
import { createTables } from "./tables.ts";
import { type Disk, openDisk } from "./disk.ts";
import { createOutboxTable } from "./outbox-table.ts";
import { OwnerTable } from "./owner-table.ts";
import { prepareStatements, type Statements } from "./statements.ts";
import { findTask, iterateQueued, readDocument, readOldestFiles, readPage, TaskTable } from "./task-table.ts";
import { createTransactions, type Transactions } from "./transactions.ts";
import { createTaskWrites } from "./write-tasks.ts";
import { countWindowMs, createKeyStore, type KeyStore } from "../key-store.ts";

interface SqliteStoreOptions extends StoreOptions {
  /** The file; created with its folder if missing. */
  path: string;
  /** Default: no log. */
  logger?: Pick<BaseLogger, "info" | "error">;
}

/**
 * Opens a durable store in one file, for one process at a time. Writes that arrive together share one
 * transaction and one sync of the disk. Reads see writes that are not on the disk yet, and do not wait.
 *
 * If the file is removed, moved or replaced, writes reject with `unavailable`, and reads still find what the
 * open file has. The newest 10,000 records are checked for damage when it is opened.
 *
 * @throws ServiceError `unavailable` if the file cannot be used; the message says why.
 */
export function openSqliteStore({ path, logger, ...options }: SqliteStoreOptions): TaskStore {
  const db = openDatabase(path, logger);
  return createSqlStore({ db, disk: openDisk(db, path, logger), logger }, options);
}

/** Creates a store in memory, with a database that has no file and ends with the store. */
export function createMemoryStore(options: StoreOptions = {}): TaskStore {
  return createSqlStore({ db: createDatabase() }, options);
}

interface OpenDatabase {
  db: DatabaseSync;
  /** Absent: the database is in memory. */
  disk?: Disk;
  logger?: Pick<BaseLogger, "error"> | undefined;
}

/** Creates a store on an open database, which it closes. */
function createSqlStore(
  { db, disk, logger }: OpenDatabase,
  {
    maxQueued = defaultMaxQueued,
    maxKeptBytes,
    webhook = false,
    events = createTaskEvents(),
    ...clockOptions
  }: StoreOptions,
): TaskStore {
  const damage = createDamageReport(logger);
  const clock = createClock(clockOptions);
  const { steadyMs } = clock;
  endImpossibleDelays(db, steadyMs());
  const suspects = db.prepare(suspectRows).all() as unknown as ListedTask[];
  for (const row of suspects) damage.parse(row);
  const sql = prepareStatements(db);
  const owners = new OwnerTable(sql);
  const tasks = new TaskTable(sql, owners, maxQueued);
  const transactions = createTransactions({
    db,
    disk,
    sql,
    events,
    mark: () => tasks.mark(),
    complete: () => tasks.complete(),
  });
  const outbox = createOutboxTable(sql, transactions, steadyMs, webhook);
  const tables = createTables({ sql, tasks, owners, outbox });
  return {
    events,
    keys: createKeyTable(sql, transactions, steadyMs, () => owners.forgetQuotas()),
    outbox,
    ...createTaskReads({ sql, tasks, owners, transactions, damage }),
    ...createTaskWrites(tables, {
      ...transactions,
      ...clock,
      damage,
      maxQueued,
      allowance: new KeyAllowance(maxKeptBytes),
    }),
    ping: transactions.ping,
    close: transactions.close,
  };
}

/** What the methods of the store work with that read tasks. */
interface TaskReadsDeps {
  sql: Statements;
  tasks: TaskTable;
  owners: OwnerTable;
  transactions: Transactions;
  damage: DamageReport;
}

function createTaskReads({ sql, tasks, owners, transactions, damage }: TaskReadsDeps): TaskReads {
  const { read } = transactions;
  return {
    get: (id) =>
      read(() => {
        const document = readDocument(sql, id);
        return document === undefined ? undefined : parseTask({ id, document });
      }),

    list: ({ limit, ...query }) =>
      read(() => toPage(readPage(sql, { ...query, limit: limit + 1 }), limit, damage.parse)),

    ownMembers: (id) =>
      read(() => {
        const seq = findTask(sql, id)?.seq ?? 0;
        return (sql.ownMembersWithFiles.all(seq) as { id: string }[]).map((row) => row.id);
      }),

    storedFiles: (query) => read(() => ({ bytes: owners.storedBytes(), oldest: readOldestFiles(sql, query) })),

    count: () =>
      read(() => {
        const byState = { ...tasks.counts };
        for (const row of iterateQueued(sql)) {
          const task = damage.parse(row);
          if (task !== undefined) return { byState, oldestQueuedAt: task.created_at };
        }
        return { byState, oldestQueuedAt: null };
      }),
  };
}

/** Opens the table `keys`; `onChange` is called in the transaction of each change. */
function createKeyTable(
  sql: Statements,
  { read, write }: Transactions,
  steadyMs: () => number,
  onChange: () => void,
): KeyStore {
  /** In memory, as no other process has the file open. */
  const requests = new WindowSums(countWindowMs);
  return createKeyStore({
    add: (name, document) =>
      write(() => {
        onChange();
        return sql.addKey.run(name, document).changes > 0;
      }),
    list: () => read(() => (sql.allKeys.all() as { document: string }[]).map((row) => row.document)),
    remove: (name) =>
      write(() => {
        onChange();
        return sql.removeKey.run(name).changes > 0;
      }),
    countRequest: (name) =>
      read(() => {
        const nowMs = steadyMs();
        const { sum: count, endsMs } = requests.add(name, 1, nowMs);
        return { count, endsInMs: endsMs - nowMs };
      }),
  });
}
