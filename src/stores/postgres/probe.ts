import { randomUUID } from "node:crypto";
import type { Database } from "./database.ts";
import type { JobQueue } from "./job-queue.ts";
import { insertTasks } from "./task-inserts.ts";

/** The length of a usual new task as JSON. */
const document = "{}".padEnd(500);

/**
 * Stores a task with its job and its event, and rolls back.
 *
 * @throws DatabaseError, or an error of the connection, if the database cannot take a task.
 */
export async function probe(database: Database, jobs: JobQueue): Promise<void> {
  const task = {
    id: randomUUID(),
    state: "queued",
    owner: null,
    bytes: 0,
    finishedAt: null,
    host: "",
    document,
    job: randomUUID(),
  } as const;
  try {
    await database.transaction(async (sql) => {
      const at = new Date();
      const { firstSeq } = await insertTasks(sql, [{ ...task, idempotency: undefined }], at, at);
      await jobs.add(sql, [{ ...task, seq: firstSeq }]);
      throw rollback;
    });
  } catch (error) {
    if (error !== rollback) throw error;
  }
}

const rollback = new Error("the probe is rolled back");
