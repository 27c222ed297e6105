import { expect, test } from "vitest";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { idempotencyTtlMs } from "../../../src/stores/store-types.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { createTestClock, minuteMs, times } from "../../contracts/task-store/harness.ts";
import { openDatabase } from "../../postgres/database.ts";
import { query } from "./query.ts";

test("old events and expired keys are deleted", async () => {
  const url = await openDatabase();
  const clock = createTestClock();
  const store = await openPostgresStore({ url, now: clock.now });
  const add = (key?: string) =>
    store.create(
      newTask("https://video.example.com/", {}, clock.now()),
      key === undefined ? undefined : { key, fingerprint: "f" },
    );
  await add("ended");
  clock.advance(idempotencyTtlMs);
  await add("not ended");
  await Promise.all(times(11_998, () => add()));
  await store.close();

  const [events] = await query(url, "SELECT min(number)::int, max(number)::int FROM unreel.task_events");
  expect(events).toEqual({ min: 2001, max: 12_000 });
  expect(await query(url, "SELECT key FROM unreel.idempotency_keys")).toEqual([{ key: "not ended" }]);
});

test("a job whose task was removed by hand does not block the others", async () => {
  const url = await openDatabase();
  const store = await openPostgresStore({ url });
  const [stray, next] = await Promise.all(
    times(2, () => store.create(newTask("https://video.example.com/", {}, new Date()))),
  );
  await query(url, `DELETE FROM unreel.tasks WHERE id = '${stray?.id}'`);
  expect((await store.claim({ leaseMs: minuteMs }))?.task.id).toBe(next?.id);
  expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
  await store.close();
});
