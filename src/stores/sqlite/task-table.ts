import { noTasks } from "../../feed/collection-changes.ts";
import { states } from "../../model/task.ts";
import { type ClaimExceptions, duplicateTaskError } from "../rules.ts";
import type { ListedTask, StoredTask } from "../documents.ts";
import type { Counted } from "../quotas.ts";
import type { ListQuery, TaskCounts } from "../store.ts";
import type { StoredFile, StoredFilesQuery } from "../store-types.ts";
import type { OwnerTable } from "./owner-table.ts";
import { type ClaimState, columnValues, type NewTask, type SavedTask, type Statements } from "./statements.ts";

export interface TaskRow extends StoredTask, ClaimState {
  seq: number;
  host: string;
}

type InsertedTask = NewTask & Pick<TaskRow, "id" | "owner" | "host" | "listed" | "video">;

/** What a row of `queue_heads` is for. */
type HeadOf = Pick<TaskRow, "owner" | "host" | "state">;

/**
 * The tables `tasks` and `queue_heads`, kept consistent with each other and with `owners`. Call the methods inside
 * a transaction; if it is rolled back, call the function that `mark` returned at its start.
 */
export class TaskTable {
  readonly #sql: Statements;
  readonly #owners: OwnerTable;
  readonly #maxQueued: number;
  #counts: TaskCounts["byState"];
  /** The highest sequence number that a task has or has had. */
  #lastSeq: number;
  /** Hosts and owners whose queue has a head, as this transaction has seen; a newer task does not replace it. */
  readonly #knownHeads = new Set<string>();
  /** Heads that are to be updated when many tasks have changed. */
  #changedHeads: Map<string, HeadOf> | undefined;

  constructor(sql: Statements, owners: OwnerTable, maxQueued: number) {
    this.#sql = sql;
    this.#owners = owners;
    this.#maxQueued = maxQueued;
    this.#counts = readCounts(sql);
    ({ seq: this.#lastSeq } = sql.lastSeq.get() as { seq: number });
  }

  get counts(): Readonly<TaskCounts["byState"]> {
    return this.#counts;
  }

  /** Returns how many more tasks of the owner may be queued. */
  freeInQueue(owner: string | null): number {
    return this.#owners.freeInQueue(owner, this.#free());
  }

  /** Returns how many places of the queue are free. */
  #free(): number {
    return this.#maxQueued - this.#counts.queued;
  }

  /** Returns a function that resets the counts and the last sequence number to their present values. */
  mark(): () => void {
    const before = { counts: { ...this.#counts }, lastSeq: this.#lastSeq };
    const resetOwners = this.#owners.mark();
    return () => {
      ({ counts: this.#counts, lastSeq: this.#lastSeq } = before);
      this.#knownHeads.clear();
      resetOwners();
    };
  }

  /** Call it at the end of each transaction. */
  complete(): void {
    this.#knownHeads.clear();
    this.#owners.complete();
  }

  /** Returns its `seq`. @throws ServiceError `conflict` if the id is taken; `quota_exceeded`. */
  insert(row: InsertedTask): number {
    const seq = this.#lastSeq + 1;
    const { id, owner, host, state, listed, video } = row;
    const { changes } = this.#sql.insertTask.run(seq, id, owner, host, listed, video, ...columnValues(row));
    if (changes === 0) throw duplicateTaskError(id);
    this.#lastSeq = seq;
    this.#count(owner, undefined, row);
    const head = `${host} ${owner ?? ""}`;
    if (row.claimable === 0 || this.#knownHeads.has(head)) return seq;
    this.#sql.offerHead.run(owner ?? "", host, state, seq);
    this.#knownHeads.add(head);
    return seq;
  }

  /** @throws ServiceError `quota_exceeded` */
  save(row: TaskRow, saved: SavedTask): void {
    const { claimable, state, dueAtMs, lease, stalledCount, idle, pageVideo } = saved;
    this.#sql.saveTask.run(...columnValues(saved), dueAtMs, lease, stalledCount, idle, pageVideo, row.seq);
    this.#count(row.owner, row, saved);
    if (claimable === row.claimable && state === row.state) return;
    if (row.claimable === 1) this.#refreshHead(row);
    if (claimable === 1) this.#refreshHead({ ...row, state });
  }

  /** Lets no claim take the task before that; null: never. */
  setDue(row: TaskRow, dueAtMs: number | null): void {
    this.#sql.setDue.run(dueAtMs, row.seq);
    if (row.claimable === 1) this.#refreshHead(row);
  }

  remove(row: TaskRow): void {
    this.#sql.deleteTask.run(row.seq);
    if (row.seq === this.#lastSeq) this.#sql.keepLastSeq.run(this.#lastSeq);
    this.#count(row.owner, row, undefined);
    if (row.claimable === 1) this.#refreshHead(row);
  }

  /** Returns the task of the owner whose turn it is at `nowMs`; neither its host nor its owner is excepted. */
  nextInTurn(nowMs: number, { exceptHosts, exceptOwners }: ClaimExceptions): TaskRow | undefined {
    const due = this.#sql.promoteDue.all(nowMs) as unknown as (HeadOf & { seq: number })[];
    for (const { owner, host, state, seq } of due) this.#sql.offerHead.run(owner ?? "", host, state, seq);
    this.#owners.writePending();
    return this.#sql.nextInTurn.get(JSON.stringify(exceptHosts), JSON.stringify(exceptOwners)) as TaskRow | undefined;
  }

  /** @throws ServiceError `quota_exceeded` */
  #count(owner: string | null, before: Counted, after: Counted): void {
    const free = this.#free();
    if (before !== undefined) this.#counts[before.state] -= 1;
    if (after !== undefined) this.#counts[after.state] += 1;
    this.#owners.count(owner, before, after, free);
  }

  /** Calls `job`, which changes many tasks; heads of queues are updated after it, once each. */
  inBulk<T>(job: () => T): T {
    const heads = new Map<string, HeadOf>();
    this.#changedHeads = heads;
    let result: T;
    try {
      result = job();
    } finally {
      this.#changedHeads = undefined;
    }
    for (const head of heads.values()) this.#refreshHead(head);
    return result;
  }

  /** Updates `queue_heads` after a change of the claimable tasks of this owner, host and state. */
  #refreshHead({ owner, host, state }: HeadOf): void {
    this.#knownHeads.clear();
    if (this.#changedHeads !== undefined) {
      this.#changedHeads.set(`${owner ?? ""} ${host} ${state}`, { owner, host, state });
      return;
    }
    this.#sql.dropHead.run(owner ?? "", host, state);
    this.#sql.nextHead.run(owner ?? "", host, state);
  }
}

function readCounts(sql: Statements): TaskCounts["byState"] {
  const counts = { ...noTasks };
  for (const state of states) {
    ({ tasks: counts[state] } = sql.countState.get(state) as { tasks: number });
  }
  return counts;
}

/** Returns the row of a task; undefined if there is none. */
export function findTask(sql: Statements, id: string): TaskRow | undefined {
  return sql.taskById.get(id) as TaskRow | undefined;
}

/** Returns the record of a task; undefined if there is none. */
export function readDocument(sql: Statements, id: string): string | undefined {
  const row = sql.documentById.get(id) as Pick<TaskRow, "document"> | undefined;
  return row?.document;
}

/** Rows that are read together, which takes half the time of one after the other: a page of the usual length, and one more. */
const rowsAtOnce = 51;

/** Yields at most `limit` tasks, newest first, or members by index, which stands for `seq`; to be read before the next write. */
export function* readPage(sql: Statements, { limit, ...query }: ListQuery): Generator<ListedTask> {
  let { before } = query;
  for (let left = limit; left > 0; left -= rowsAtOnce) {
    const rows = readRows(sql, { ...query, before, limit: Math.min(left, rowsAtOnce) });
    for (const [seq, id, document] of rows) {
      // A long one only if the page has room for it.
      yield { seq, id, document: document ?? readDocument(sql, id)! };
      before = seq;
    }
    if (rows.length < rowsAtOnce) return;
  }
}

type PageColumns = [seq: number, id: string, document: string | null];

function readRows(sql: Statements, { limit, state, owner, parent, before }: ListQuery): PageColumns[] {
  if (parent !== undefined) {
    const { seq } = findTask(sql, parent) ?? { seq: 0 };
    return sql.pageOfParent.all(seq, before ?? 0, limit, state ?? null) as unknown[] as PageColumns[];
  }
  const statement =
    owner === undefined
      ? sql[state === undefined ? "page" : "pageOfState"]
      : sql[state === undefined ? "pageOfOwner" : "pageOfOwnerAndState"];
  const values = [owner, state].filter((value) => value !== undefined);
  return statement.all(before ?? Number.MAX_SAFE_INTEGER, limit, ...values) as unknown[] as PageColumns[];
}

/** Returns files of tasks, those first that finished first. */
export function readOldestFiles(sql: Statements, { limit, after }: StoredFilesQuery): StoredFile[] {
  const { finishedAt = "", seq = 0 } = after ?? {};
  return sql.oldestFiles.all(finishedAt, seq, limit) as unknown as StoredFile[];
}

/** Oldest first; to be read before the next statement. */
export function iterateQueued(sql: Statements): Iterable<ListedTask> {
  return sql.queuedTasks.iterate() as Iterable<unknown> as Iterable<ListedTask>;
}
