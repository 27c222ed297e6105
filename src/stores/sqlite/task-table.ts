import { states } from "../../task.ts";
import { duplicateTaskError, emptyCounts, taskNotFoundError } from "../rules.ts";
import type { ListedTask, StoredTask } from "../documents.ts";
import type { ListQuery } from "../store.ts";
import type { Statements } from "./statements.ts";

/** What decides whether a claim may take a task. */
export interface ClaimState {
  claimable: 0 | 1;
  /** When the task becomes claimable, by the store's steady clock; null if it is so now or never. */
  dueAtMs: number | null;
  lease: string | null;
}

export interface TaskRow extends StoredTask, ClaimState {
  seq: number;
  host: string;
}

type NewRow = Pick<TaskRow, "id" | "state" | "owner" | "host" | "document">;

/**
 * The tables `tasks` and `queue_heads`, kept consistent with each other. Call the writing methods inside
 * a transaction; if it is rolled back, call the function that `mark` returned at its start.
 */
export function createTaskTable(sql: Statements) {
  let counts = emptyCounts();
  for (const state of states) {
    const { tasks } = sql.countState.get(state) as { tasks: number };
    counts[state] = tasks;
  }

  /** Updates `queue_heads` for a host whose claimable tasks have changed. */
  function refreshHead(host: string): void {
    sql.dropHead.run(host);
    sql.nextHead.run(host);
  }

  function find(id: string): TaskRow | undefined {
    return sql.taskById.get(id) as TaskRow | undefined;
  }

  return {
    find,

    queued: () => counts.queued,

    counts: () => ({ ...counts }),

    /** Returns a function that resets the counts to their present values. */
    mark() {
      const before = { ...counts };
      return () => {
        counts = before;
      };
    },

    /** Oldest first; to be read before the next statement. */
    queuedTasks: () => sql.queuedTasks.iterate() as Iterable<unknown> as Iterable<ListedTask>,

    /** @throws ServiceError `not_found` */
    require(id: string): TaskRow {
      const row = find(id);
      if (row === undefined) throw taskNotFoundError(id);
      return row;
    },

    document(id: string): string | undefined {
      const row = sql.documentById.get(id) as Pick<TaskRow, "document"> | undefined;
      return row?.document;
    },

    /** Newest first; with `before` only those of a lower `seq`. */
    page({ limit, state, owner, before = Number.MAX_SAFE_INTEGER }: ListQuery): ListedTask[] {
      const statement =
        owner === undefined
          ? sql[state === undefined ? "page" : "pageOfState"]
          : sql[state === undefined ? "pageOfOwner" : "pageOfOwnerAndState"];
      const values = [owner, state].filter((value) => value !== undefined);
      return statement.all(...values, before, limit) as unknown as ListedTask[];
    },

    /** @throws ServiceError `conflict` if the id is taken. */
    insert({ id, state, owner, host, document }: NewRow) {
      const claimable = Number(state === "queued");
      const { changes, lastInsertRowid } = sql.insertTask.run(
        id,
        state,
        owner,
        host,
        claimable,
        document,
      );
      if (changes === 0) throw duplicateTaskError(id);
      counts[state] += 1;
      if (claimable === 1) sql.offerHead.run(host, lastInsertRowid);
    },

    save(
      row: TaskRow,
      {
        state,
        document,
        claimable,
        dueAtMs,
        lease,
        stalledCount,
      }: Omit<StoredTask, "id" | "owner"> & ClaimState,
    ): void {
      sql.saveTask.run(state, claimable, dueAtMs, lease, stalledCount, document, row.seq);
      counts[row.state] -= 1;
      counts[state] += 1;
      if (claimable !== row.claimable) refreshHead(row.host);
    },

    extendLease(row: TaskRow, dueAtMs: number): void {
      sql.extendLease.run(dueAtMs, row.seq);
      if (row.claimable === 1) refreshHead(row.host);
    },

    remove(row: TaskRow): void {
      sql.deleteTask.run(row.seq);
      counts[row.state] -= 1;
      if (row.claimable === 1) refreshHead(row.host);
    },

    /** Returns the oldest task that is claimable at `nowMs` and whose host is not excepted. */
    oldestClaimable(nowMs: number, exceptHosts: readonly string[]): TaskRow | undefined {
      const due = sql.promoteDue.all(nowMs) as Pick<TaskRow, "host" | "seq">[];
      for (const { host, seq } of due) sql.offerHead.run(host, seq);
      return sql.oldestClaimable.get(JSON.stringify(exceptHosts)) as TaskRow | undefined;
    },
  };
}
