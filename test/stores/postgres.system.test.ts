import { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { describeTaskStore } from "../contracts/task-store.ts";
import { openDatabase } from "../postgres/database.ts";
import type { OpenStore } from "../contracts/task-store/harness.ts";
import { createTestLog } from "../log.ts";
import { type ClockedStoreOptions, openClockedStore } from "./postgres/clocked-store.ts";

let url: string;
/** One connection for all tests: to open it takes longer than what is asked on it. */
let connection: Pool;

beforeAll(async () => {
  url = await openDatabase(afterAll);
  connection = new Pool({ connectionString: url, max: 1 });
  return () => connection.end();
});

let clocks: Pick<ClockedStoreOptions, "now" | "elapsedMs">;

const open: OpenStore = async (options) => {
  await connection.query(emptyTables);
  clocks = { now: options.now, elapsedMs: options.elapsedMs };
  return openClockedStore({ url, ...options });
};

// The store looks for dead workers every three seconds.
open.slackMs = 3_000;

open.replaceDocuments = async (store, documents) => {
  await store.close();
  for (const [id, document] of documents) {
    await connection.query("UPDATE unreel.tasks SET document = $1 WHERE id = $2", [document, id]);
  }
  const { log, logger } = createTestLog();
  return { store: await openClockedStore({ url, logger, ...clocks }), log };
};

describeTaskStore("the Postgres store", open);

/** Removes what the previous store has left; to truncate tables of a few rows, or to create them, takes far longer. */
const emptyTables = `
  DO $$ BEGIN
    IF to_regclass('unreel.tasks') IS NOT NULL THEN
      DELETE FROM unreel.tasks;
      DELETE FROM unreel.members;
      DELETE FROM unreel.idempotency_keys;
      DELETE FROM unreel.task_events;
      DELETE FROM unreel.keys;
      DELETE FROM unreel.owners;
      DELETE FROM unreel.request_counts;
      DELETE FROM unreel.outbox_lines;
      DELETE FROM unreel.outbox_messages;
      UPDATE unreel.counters SET seq = 0, events = 0, counted_events = 0, queued = 0, running = 0,
        succeeded = 0, failed = 0, canceled = 0;
      DELETE FROM unreel_jobs.job;
      DELETE FROM unreel_jobs.queue;
    END IF;
  END $$`;
