import { randomUUID } from "node:crypto";
import type { BaseLogger } from "pino";
import type { TaskChange } from "../../feed/task-changes.ts";
import { createTaskEvents } from "../../feed/task-events.ts";
import { type State, type Task } from "../../model/task.ts";
import { type Clock, createClock } from "../clock.ts";
import { createDamageReport, type DamageReport, type ListedTask, parseTask, toPage } from "../documents.ts";
import { claimDocument, updateDocument } from "../task-writes.ts";
import { createLocalMembers, type LocalMembers, type LocalTables } from "../local-members.ts";
import { assertStoredBytes, defaultMaxQueued, delayOf } from "../rules.ts";
import {
  type Claim,
  type StoreOptions,
  type TaskReads,
  type TaskStore,
  type TaskWrites,
  type UpdateOptions,
} from "../store.ts";
import { endImpossibleDelays, openDatabase, suspectRows } from "./database.ts";
import { createJob } from "./create-job.ts";
import { createKeyTable } from "./key-table.ts";
import { createMemberTables } from "./member-tables.ts";
import { createOutboxTable, type OutboxTable } from "./outbox-table.ts";
import { OwnerTable } from "./owner-table.ts";
import { type ClaimState, prepareStatements, type Statements } from "./statements.ts";
import {
  findTask,
  iterateQueued,
  readDocument,
  readOldestFiles,
  readPage,
  requireTask,
  type TaskRow,
  TaskTable,
} from "./task-table.ts";
import { type Changed, createTransactions, type Transactions } from "./transactions.ts";

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
export function openSqliteStore(options: SqliteStoreOptions): TaskStore {
  const { path, maxQueued = defaultMaxQueued, webhook = false, logger } = options;
  const { events = createTaskEvents() } = options;
  const clock = createClock(options);
  const { steadyMs } = clock;
  const db = openDatabase(path, logger);
  endImpossibleDelays(db, steadyMs());
  const damage = createDamageReport(logger);
  const suspects = db.prepare(suspectRows).all() as unknown as ListedTask[];
  for (const row of suspects) damage.parse(row);
  const sql = prepareStatements(db);
  const owners = new OwnerTable(sql);
  const tasks = new TaskTable(sql, owners, maxQueued);
  const transactions = createTransactions({
    db,
    path,
    sql,
    events,
    logger,
    mark: () => tasks.mark(),
    complete: () => tasks.complete(),
  });
  const outbox = createOutboxTable(sql, transactions, steadyMs, webhook);
  const tables = createMemberTables({ sql, tasks, outbox });
  const members = createLocalMembers(tables, { damage, now: clock.now });
  const deps = { sql, tasks, owners, outbox, tables, members, transactions, damage, maxQueued, ...clock };
  return {
    events,
    keys: createKeyTable(sql, transactions, steadyMs, () => owners.forgetQuotas()),
    outbox,
    ...createTaskReads(deps),
    ...createTaskWrites(deps),
    ping: transactions.ping,
    close: transactions.close,
  };
}

/** What the methods of the store work with. */
interface SqliteStoreDeps extends Clock {
  sql: Statements;
  tasks: TaskTable;
  owners: OwnerTable;
  outbox: OutboxTable;
  tables: LocalTables<TaskRow>;
  members: LocalMembers<TaskRow>;
  transactions: Transactions;
  damage: DamageReport;
  maxQueued: number;
}

function createTaskReads({ sql, tasks, owners, transactions, damage }: SqliteStoreDeps): TaskReads {
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
        const { seq } = requireTask(sql, id);
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

function createTaskWrites(deps: SqliteStoreDeps): TaskWrites {
  const { sql, tasks, members, transactions, damage, steadyMs } = deps;
  const { write, change } = transactions;
  return {
    async create(given, idempotency) {
      const { task } = await change(createJob(deps, given, idempotency, false));
      return task;
    },

    reuse: (given, idempotency) => change(createJob(deps, given, idempotency, true)),

    async grow(id, given) {
      const growing = structuredClone(given);
      return change(() => members.grow(id, growing));
    },

    retryMembers: (id, lease) => change(() => tasks.inBulk(() => members.retry(id, lease))),

    async update(id, taskChange, options = {}) {
      const changes = structuredClone(taskChange);
      const given = structuredClone(options);
      return change(() => updateTask(deps, id, changes, given));
    },

    delete: (id) =>
      change(() => {
        const row = requireTask(sql, id);
        return { result: damage.parse(row), events: tasks.inBulk(() => members.remove(row)) };
      }),

    async claim({ leaseMs, exceptHosts = [] }) {
      const hosts = [...exceptHosts];
      return change(() => claimTask(deps, leaseMs, hosts));
    },

    heartbeat: (id, lease, leaseMs) =>
      write(() => {
        const row = findTask(sql, id);
        if (row?.lease !== lease) return false;
        tasks.extendLease(row, steadyMs() + leaseMs);
        return true;
      }),
  };
}

function updateTask(
  { sql, tasks, owners, outbox, members, now, steadyMs }: SqliteStoreDeps,
  id: string,
  change: TaskChange,
  { maxStoredBytes, ...given }: UpdateOptions,
): Changed<Task> {
  const row = requireTask(sql, id);
  const { task, stored, event, message } = updateDocument(row, change, given, now());
  if (message !== undefined) outbox.add(message);
  const delayMs = given.runAfter && delayOf(given.runAfter, now());
  const dueAtMs = delayMs === undefined ? undefined : steadyMs() + delayMs;
  const claim = change.state === undefined ? undefined : claimStateAfter(change.state, dueAtMs);
  tasks.save(row, { ...row, ...claim, ...stored });
  if (maxStoredBytes !== undefined) assertStoredBytes(owners.storedBytes(), maxStoredBytes);
  const followed = members.follow(row, { before: row.state, after: stored.state });
  const isCanceled = task.kind === "collection" && change.state === "canceled";
  if (!isCanceled) return { result: task, events: [event, ...followed] };
  const canceled = tasks.inBulk(() => members.cancel(row));
  const { document } = requireTask(sql, id);
  return { result: parseTask({ id, document }), events: [event, ...canceled] };
}

/** @param dueAtMs When a queued task becomes claimable, by the steady clock; default: at once. */
function claimStateAfter(state: State, dueAtMs: number | undefined): ClaimState {
  if (state !== "queued") return { claimable: 0, dueAtMs: null, lease: null };
  return { claimable: dueAtMs === undefined ? 1 : 0, dueAtMs: dueAtMs ?? null, lease: null };
}

/** Takes rows that are damaged out of the queue. */
function claimTask(
  { tasks, owners, damage, members, now, steadyMs }: SqliteStoreDeps,
  leaseMs: number,
  exceptHosts: readonly string[],
): Changed<Claim | undefined> {
  const nowMs = steadyMs();
  for (;;) {
    const row = tasks.nextInTurn(nowMs, exceptHosts);
    if (row === undefined) return { result: undefined };
    const changed = damage.unlessDamaged(row, () => claimDocument(row, now()));
    if (changed === undefined) {
      tasks.save(row, { ...row, claimable: 0, dueAtMs: null });
      continue;
    }
    const { task, stored, event } = changed;
    const lease = randomUUID();
    tasks.save(row, { ...stored, claimable: 0, dueAtMs: nowMs + leaseMs, lease });
    owners.markClaim(row.owner);
    const { stalledCount } = stored;
    const events = [event, ...members.follow(row, { before: row.state, after: stored.state })];
    return { result: { task, lease, stalledCount, bytesLeft: owners.bytesLeft(row.owner) }, events };
  }
}
