import { expect, test } from "vitest";
import { newTask } from "../../../src/feed/task-changes.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { openDatabase } from "../../postgres/database.ts";
import { query } from "./query.ts";

test("while many tasks wait after many that have ended, counts and first pages read no more rows than they need", async () => {
  const url = await openDatabase();
  const first = await openPostgresStore({ url });
  const [failed, queued] = [1, 2].map((n) => newTask(`https://video.example.com/${n}`, {}, new Date(), "anna"));
  for (const task of [failed!, queued!]) await first.create(task);
  await first.update(failed!.id, { state: "canceled" });
  await first.close();
  for (const [{ id }, count] of [
    [failed!, 8_000],
    [queued!, 2_000],
  ] as const) {
    await query(
      url,
      `INSERT INTO unreel.tasks SELECT copy.* FROM unreel.tasks, (SELECT max(seq) AS last FROM unreel.tasks) AS known,
         generate_series(1, ${count}) AS n, LATERAL jsonb_populate_record(tasks, jsonb_build_object('seq', last + n,
           'id', tasks.id || n, 'job', NULL, 'video', NULL, 'document', replace(tasks.document, tasks.id, tasks.id || n))) AS copy
       WHERE tasks.id = '${id}'`,
    );
  }
  await query(url, "ANALYZE unreel.tasks");
  const store = await openPostgresStore({ url });
  const before = await readRows(url);
  await store.count();
  for (const owner of [undefined, "anna"]) expect((await store.list({ limit: 50, owner })).tasks).toHaveLength(50);
  // Its connections then say what they have read.
  await store.close();
  await expect.poll(async () => (await readRows(url)) - before).toBeGreaterThan(100);
  // With those that wait, which the opening counts.
  expect((await readRows(url)) - before).toBeLessThan(4_000);
});

/** Returns how many entries of the table's indexes were read. */
async function readRows(url: string): Promise<number> {
  const statement = "SELECT sum(idx_tup_read)::int AS rows FROM pg_stat_user_indexes WHERE relname = 'tasks'";
  const [found] = await query<{ rows: number }>(url, statement);
  return found?.rows ?? 0;
}
