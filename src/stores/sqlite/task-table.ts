import { states } from "../../model/task.ts";
import { duplicateTaskError, emptyCounts, taskNotFoundError } from "../rules.ts";
import type { ListedTask, StoredTask } from "../documents.ts";
import type { Counted } from "../quotas.ts";
import type { ListQuery, StoredFile, StoredFilesQuery } from "../store.ts";
import { createOwnerTable } from "./owner-table.ts";
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

/** What a row of `queue_heads` is for. */
type HeadOf = Pick<TaskRow, "owner" | "host" | "state">;

type NewRow = Pick<
  TaskRow,
  "id" | "state" | "owner" | "host" | "document" | "bytes" | "finishedAt"
>;

/**
 * The tables `tasks`, `queue_heads` and `owners`, kept consistent with each other. Call the writing methods inside
 * a transaction; if it is rolled back, call the function that `mark` returned at its start.
 */
export function createTaskTable(sql: Statements) {
  let counts = emptyCounts();
  for (const state of states) {
    const { tasks } = sql.countState.get(state) as { tasks: number };
    counts[state] = tasks;
  }

  /** The highest sequence number that a task has or has had. */
  let { seq: lastSeq } = sql.lastSeq.get() as { seq: number };

  const owners = createOwnerTable(sql);
  const pages = [sql.page, sql.pageOfState, sql.pageOfOwner, sql.pageOfOwnerAndState];
  // The objects that node:sqlite makes take a third of the time of a page.
  for (const page of pages) page.setReturnArrays(true);

  /** Hosts and owners whose queue has a head, as this transaction has seen; a newer task does not replace it. */
  const knownHeads = new Set<string>();

  /** Updates `queue_heads` after a change of the claimable tasks of this owner, host and state. */
  function refreshHead({ owner, host, state }: HeadOf): void {
    knownHeads.clear();
    sql.dropHead.run(owner ?? "", host, state);
    sql.nextHead.run(owner ?? "", host, state);
  }

  /** @throws ServiceError `quota_exceeded` */
  function count(owner: string | null, before: Counted, after: Counted): void {
    if (before !== undefined) counts[before.state] -= 1;
    if (after !== undefined) counts[after.state] += 1;
    owners.count(owner, before, after);
  }

  function find(id: string): TaskRow | undefined {
    return sql.taskById.get(id) as TaskRow | undefined;
  }

  return {
    find,

    queued: () => counts.queued,

    counts: () => ({ ...counts }),

    /** Returns a function that resets the counts and the last sequence number to their present values. */
    mark() {
      const before = { counts: { ...counts }, lastSeq };
      const resetOwners = owners.mark();
      return () => {
        ({ counts, lastSeq } = before);
        knownHeads.clear();
        resetOwners();
      };
    },

    /** Call it at the end of each transaction. */
    complete() {
      knownHeads.clear();
      owners.complete();
    },

    /** Call it in the transaction in which a key changes. */
    forgetQuotas: owners.forgetQuotas,

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
      const rows = statement.all(...values, before, limit) as unknown as [number, string, string][];
      return rows.map(([seq, id, document]) => ({ seq, id, document }));
    },

    /** @throws ServiceError `conflict` if the id is taken; `quota_exceeded`. */
    insert({ id, state, owner, host, document, bytes, finishedAt }: NewRow) {
      const claimable = Number(state === "queued");
      const seq = lastSeq + 1;
      const { changes } = sql.insertTask.run(
        seq,
        id,
        state,
        owner,
        host,
        claimable,
        document,
        bytes,
        finishedAt,
      );
      if (changes === 0) throw duplicateTaskError(id);
      lastSeq = seq;
      count(owner, undefined, { state, bytes });
      const headKey = `${host} ${owner ?? ""}`;
      if (claimable === 0 || knownHeads.has(headKey)) return;
      sql.offerHead.run(owner ?? "", host, state, seq);
      knownHeads.add(headKey);
    },

    /** @throws ServiceError `quota_exceeded` */
    save(
      row: TaskRow,
      {
        state,
        document,
        claimable,
        dueAtMs,
        lease,
        stalledCount,
        bytes,
        finishedAt,
      }: Omit<StoredTask, "id" | "owner"> & ClaimState,
    ): void {
      sql.saveTask.run(
        state,
        claimable,
        dueAtMs,
        lease,
        stalledCount,
        document,
        bytes,
        finishedAt,
        row.seq,
      );
      count(row.owner, row, { state, bytes });
      if (claimable === row.claimable && state === row.state) return;
      if (row.claimable === 1) refreshHead(row);
      if (claimable === 1) refreshHead({ ...row, state });
    },

    extendLease(row: TaskRow, dueAtMs: number): void {
      sql.extendLease.run(dueAtMs, row.seq);
      if (row.claimable === 1) refreshHead(row);
    },

    remove(row: TaskRow): void {
      sql.deleteTask.run(row.seq);
      if (row.seq === lastSeq) sql.keepLastSeq.run(lastSeq);
      count(row.owner, row, undefined);
      if (row.claimable === 1) refreshHead(row);
    },

    /** Returns how many bytes the files of all tasks have together. */
    storedBytes: owners.storedBytes,

    /** Those first that finished first. */
    oldestFiles({ limit, after }: StoredFilesQuery): StoredFile[] {
      const { finishedAt = "", seq = 0 } = after ?? {};
      return sql.oldestFiles.all(finishedAt, seq, limit) as unknown as StoredFile[];
    },

    /** Returns the task of the owner whose turn it is at `nowMs`; its host is not excepted. */
    nextInTurn(nowMs: number, exceptHosts: readonly string[]): TaskRow | undefined {
      const due = sql.promoteDue.all(nowMs) as unknown as (HeadOf & Pick<TaskRow, "seq">)[];
      for (const { owner, host, state, seq } of due)
        sql.offerHead.run(owner ?? "", host, state, seq);
      owners.writePending();
      return sql.nextInTurn.get(JSON.stringify(exceptHosts)) as TaskRow | undefined;
    },

    /** Returns how many bytes the limits of the task's owner leave; undefined: any number. */
    bytesLeft: ({ owner }: TaskRow) => owners.bytesLeft(owner),

    /** Puts the owner of the task behind the others that run as many tasks. */
    markClaim: ({ owner }: TaskRow) => owners.markClaim(owner),
  };
}
