import type { State } from "../../task.ts";
import { duplicateTaskError, taskNotFoundError } from "../rules.ts";
import type { StoredTask } from "../documents.ts";
import { type Columns, integer, text } from "./columns.ts";
import type { Statements } from "./statements.ts";

/** What decides whether a claim may take a task. */
export interface ClaimState {
  isClaimable: boolean;
  /** When the task becomes claimable, Unix milliseconds; null if it is so now or never. */
  dueAtMs: number | null;
  lease: string | null;
}

export interface TaskRow extends StoredTask, ClaimState {
  seq: number;
  host: string;
}

/**
 * The tables `tasks` and `queue_heads`, kept consistent with each other. Call the writing methods inside
 * a transaction; if it is rolled back, call the function that `mark` returned at its start.
 */
export function createTaskTable(sql: Statements) {
  let queued = integer(sql.countQueued.get() ?? {}, "queued");

  /** Updates `queue_heads` for a host whose claimable tasks have changed. */
  function refreshHead(host: string): void {
    sql.dropHead.run(host);
    sql.nextHead.run(host);
  }

  function find(id: string): TaskRow | undefined {
    const row = sql.taskById.get(id);
    return row && taskRow(row);
  }

  return {
    find,

    queued: () => queued,

    /** Returns a function that resets `queued` to its present value. */
    mark() {
      const before = queued;
      return () => {
        queued = before;
      };
    },

    /** @throws ServiceError `not_found` */
    require(id: string): TaskRow {
      const row = find(id);
      if (row === undefined) throw taskNotFoundError(id);
      return row;
    },

    document(id: string): string | undefined {
      const row = sql.documentById.get(id);
      return row && text(row, "document");
    },

    /** Newest first; with `before` only those of a lower `seq`. */
    page(
      limit: number,
      state: State | undefined,
      before = Number.MAX_SAFE_INTEGER,
    ): Pick<TaskRow, "seq" | "document">[] {
      const rows =
        state === undefined
          ? sql.page.all(before, limit)
          : sql.pageOfState.all(state, before, limit);
      return rows.map((row) => ({ seq: integer(row, "seq"), document: text(row, "document") }));
    },

    /** @throws ServiceError `conflict` if the id is taken. */
    insert({ id, state, host, document }: NewRow): void {
      const isClaimable = state === "queued";
      const { changes, lastInsertRowid } = sql.insertTask.run(
        id,
        state,
        host,
        Number(isClaimable),
        document,
      );
      if (changes === 0) throw duplicateTaskError(id);
      if (!isClaimable) return;
      sql.offerHead.run(host, lastInsertRowid);
      queued += 1;
    },

    save(
      row: TaskRow,
      { state, document, isClaimable, dueAtMs, lease, stalledCount }: StoredTask & ClaimState,
    ): void {
      sql.saveTask.run(state, Number(isClaimable), dueAtMs, lease, stalledCount, document, row.seq);
      queued += Number(state === "queued") - Number(row.state === "queued");
      if (isClaimable !== row.isClaimable) refreshHead(row.host);
    },

    extendLease(row: TaskRow, dueAtMs: number): void {
      sql.extendLease.run(dueAtMs, row.seq);
      if (row.isClaimable) refreshHead(row.host);
    },

    remove(row: TaskRow): void {
      sql.deleteTask.run(row.seq);
      queued -= Number(row.state === "queued");
      if (row.isClaimable) refreshHead(row.host);
    },

    /** Returns the oldest task that is claimable at `nowMs` and whose host is not excepted. */
    oldestClaimable(nowMs: number, exceptHosts: readonly string[]): TaskRow | undefined {
      for (const due of sql.promoteDue.all(nowMs)) {
        sql.offerHead.run(text(due, "host"), integer(due, "seq"));
      }
      const row = sql.oldestClaimable.get(JSON.stringify(exceptHosts));
      return row && taskRow(row);
    },
  };
}

interface NewRow extends Pick<TaskRow, "state" | "host" | "document"> {
  id: string;
}

function taskRow(row: Columns): TaskRow {
  return {
    seq: integer(row, "seq"),
    state: text(row, "state") as State,
    host: text(row, "host"),
    isClaimable: integer(row, "claimable") === 1,
    dueAtMs: row["due_at"] === null ? null : integer(row, "due_at"),
    lease: row["lease"] === null ? null : text(row, "lease"),
    stalledCount: integer(row, "deaths"),
    document: text(row, "document"),
  };
}
