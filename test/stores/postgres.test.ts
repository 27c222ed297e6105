import { afterAll, beforeAll } from "vitest";
import { describeTaskStore } from "../contracts/task-store.ts";
import { openDatabase } from "../postgres/database.ts";
import { openClockedStore } from "./postgres/clocked-store.ts";
import { query } from "./postgres/query.ts";

let url: string;

beforeAll(async () => {
  url = await openDatabase(afterAll);
});

const open = async (now: () => Date, maxQueued = 10_000) => {
  await query(url, emptyTables);
  return openClockedStore({ url, now, maxQueued });
};

// The store looks for dead workers every three seconds.
describeTaskStore("the Postgres store", Object.assign(open, { slackMs: 3_000 }));

/** Removes what the previous store has left; new tables for each test would take twice as long. */
const emptyTables = `
  DO $$ BEGIN
    IF to_regclass('unreel.tasks') IS NOT NULL THEN
      TRUNCATE unreel.tasks, unreel.idempotency_keys, unreel.task_events;
      UPDATE unreel.counters SET seq = 0, events = 0, queued = 0;
      DELETE FROM unreel_jobs.job;
      DELETE FROM unreel_jobs.queue;
    END IF;
  END $$`;
