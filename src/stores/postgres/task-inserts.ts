import { randomUUID } from "node:crypto";
import { newTask } from "../../feed/task-changes.ts";
import type { Task } from "../../model/task.ts";
import { newColumns } from "../task-writes.ts";
import { countedRecord } from "../quotas.ts";
import type { Database, Sql } from "./database.ts";
import type { JobQueue } from "./job-queue.ts";
import { addedUse, insertedColumns, type NewRow, noCountersError } from "./task-rows.ts";

/** Returns what is stored of a new task, with a job if it is queued. */
export function toInsert(task: Task): NewRow {
  const job = task.state === "queued" ? randomUUID() : null;
  return { ...newColumns(task, JSON.stringify(task)), memberships: 0, job };
}

interface Inserted {
  rows: (NewRow & { seq: number })[];
  /** Number of the newest event. */
  number: number;
}

/**
 * Writes tasks with their events, as part of a transaction. Here the counters come first and serve
 * as the lock: an insert touches no row that another transaction could have locked before.
 *
 * @throws Error if an id exists
 */
export async function insertTasks(sql: Sql, inserts: readonly NewRow[]): Promise<Inserted> {
  const lists = Object.entries(insertedColumns).map(([name, [, of]]) => [name, inserts.map((insert) => of(insert))]);
  const [row] = await sql.query<Record<"seq" | "events" | "tasks", number>>(statement, {
    ...Object.fromEntries(lists),
    count: inserts.length,
    queued: inserts.filter(({ state }) => state === "queued").length,
  });
  if (row === undefined) throw noCountersError();
  const { seq, events, tasks } = row;
  if (tasks < inserts.length) throw new Error("a new task has the id of another one");
  return {
    rows: inserts.map((insert, index) => ({ ...insert, seq: seq + 1 + index })),
    number: events + inserts.length,
  };
}

const columns = Object.keys(insertedColumns).join(", ");
const arrays = Object.entries(insertedColumns).map(([name, [type]]) => `:${name}::${type}[]`);

const statement = `
  WITH inserts AS (
    SELECT * FROM unnest(${arrays.join(", ")}) WITH ORDINALITY AS task (${columns}, ordinal)
  ), counted AS (
    UPDATE unreel.counters SET seq = seq + :count, events = events + :count, queued = queued + :queued,
      counted_events = counted_events + :count, (running, succeeded, failed, canceled) = (
        SELECT running + count(*) FILTER (WHERE state = 'running'),
          succeeded + count(*) FILTER (WHERE state = 'succeeded'),
          failed + count(*) FILTER (WHERE state = 'failed'),
          canceled + count(*) FILTER (WHERE state = 'canceled')
        FROM inserts
      )
    RETURNING seq - :count AS seq, events - :count AS events
  ), inserted AS (
    INSERT INTO unreel.tasks (seq, ${columns}) SELECT seq + ordinal, ${columns}
    FROM counted, inserts
    ON CONFLICT (id) DO NOTHING RETURNING 1
  ), owned AS (
    INSERT INTO unreel.owners AS known (owner, queued, running, bytes, records)
    SELECT coalesce(owner, ''), count(*) FILTER (WHERE state = 'queued'), count(*) FILTER (WHERE state = 'running'),
      sum(bytes), sum${countedRecord}
    FROM inserts, (SELECT 1 FROM counted) AS locked GROUP BY coalesce(owner, '')
    ON CONFLICT (owner) DO UPDATE SET ${addedUse}
  ), published AS (
    INSERT INTO unreel.task_events (number, type, task_id, json, owner)
    SELECT events + ordinal, 'task', id, document, owner FROM counted, inserts
  )
  SELECT seq, events, (SELECT count(*) FROM inserted) AS tasks, pg_notify('unreel_events', (events + :count)::text)
  FROM counted`;

/**
 * Stores a task of a usual length with its job and its event, and rolls back.
 *
 * @throws DatabaseError, or an error of the connection, if the database cannot take a task.
 */
export async function probe(database: Database, jobs: JobQueue): Promise<void> {
  const insert = toInsert(newTask("https://example.com/".padEnd(200, "a"), {}, new Date()));
  const rollback = new Error("the probe is rolled back");
  try {
    await database.transaction(async (sql) => {
      const { rows } = await insertTasks(sql, [insert]);
      await jobs.add(sql, rows);
      throw rollback;
    });
  } catch (error) {
    if (error !== rollback) throw error;
  }
}
