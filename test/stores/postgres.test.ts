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
  // Faster by half than a new database for each test.
  await query(url, "DROP SCHEMA IF EXISTS unreel, unreel_jobs CASCADE");
  return openClockedStore({ url, now, maxQueued });
};

// The store looks for dead workers every three seconds.
describeTaskStore("the Postgres store", Object.assign(open, { slackMs: 3_000 }));
