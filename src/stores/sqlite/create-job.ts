import { changeEvent } from "../../feed/task-events.ts";
import type { Task } from "../../model/task.ts";
import { copyTask, newAnswer, readAnswer, reusedAnswer } from "../documents.ts";
import type { Reused, Idempotency } from "../store-types.ts";
import type { LocalTables } from "../local-members.ts";
import { assertQueueNotFull, ofOwner } from "../rules.ts";
import { newColumns } from "../task-writes.ts";
import type { Statements } from "./statements.ts";
import { keepKey, recallKey, type TaskRow, type TaskTable } from "./task-table.ts";
import type { Changed } from "./transactions.ts";

interface CreateJobDeps {
  sql: Statements;
  tasks: TaskTable;
  tables: LocalTables<TaskRow>;
  maxQueued: number;
  steadyMs: () => number;
}

/** Returns the job that stores a task, unless an earlier one is the answer. */
export function createJob(deps: CreateJobDeps, given: Task, idempotency: Idempotency | undefined, isReusing: boolean) {
  const { sql, tasks, tables, maxQueued, steadyMs } = deps;
  const task = copyTask(given);
  const document = JSON.stringify(task);
  const claimable = task.state === "queued" ? 1 : 0;
  const columns = newColumns(task, document);
  const key = ofOwner(task, idempotency);
  return (): Changed<Reused> => {
    const nowMs = steadyMs();
    const earlier = key && recallKey(sql, key, nowMs);
    if (earlier !== undefined) return { result: readAnswer(task, earlier) };
    const found = isReusing ? tables.findReusable(task) : undefined;
    const reused = found && reusedAnswer(found.document);
    if (found === undefined) {
      assertQueueNotFull(tasks.counts.queued, maxQueued);
      tasks.insert({ ...columns, claimable });
    }
    if (key !== undefined) keepKey(sql, key, reused ?? newAnswer(task), nowMs);
    if (reused !== undefined) return { result: readAnswer(task, reused) };
    return { result: { task, isNew: true }, events: [changeEvent(task, document)] };
  };
}
