import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { noTasks } from "../../../src/feed/collection-changes.ts";
import { collect, entryUrl, membersOf } from "../../contracts/task-store/collections.ts";
import { openStoreHarness, times } from "../../contracts/task-store/harness.ts";
import { openDatabase } from "../../postgres/database.ts";
import { query } from "./query.ts";

test("others' tasks are stored while a long collection is being canceled", async () => {
  const url = await openDatabase();
  const harness = await openStoreHarness(() => openPostgresStore({ url }));
  const { store } = harness;
  const { id } = await collect(harness, times(3, entryUrl));
  const [member] = await membersOf(harness, id);
  const blocker = await lockJobOf(url, member!.id);

  const canceling = store.update(id, { state: "canceled" });
  canceling.catch(() => {});
  await expect.poll(() => query(url, waiting)).toHaveLength(1);
  await store.create(newTask("https://video.example.com/", {}, new Date(), "bert"));
  expect((await store.get(id))?.state).toBe("running");

  await blocker.query("COMMIT");
  expect(await canceling).toMatchObject({ state: "canceled", counts: { ...noTasks, canceled: 3 } });
  expect((await store.count()).byState).toEqual({ ...noTasks, queued: 1, canceled: 4 });
});

const waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";

/** Returns a connection that keeps the job of a task locked until it commits. */
async function lockJobOf(url: string, task: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query("BEGIN");
  const select = "SELECT id FROM unreel_jobs.job WHERE id = (SELECT job FROM unreel.tasks WHERE id = $1) FOR UPDATE";
  expect((await client.query(select, [task])).rowCount).toBe(1);
  return client;
}
