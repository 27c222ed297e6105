import { expect, test } from "vitest";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { describeTaskStore } from "../contracts/task-store.ts";
import { minuteMs, times } from "../contracts/task-store/harness.ts";

describeTaskStore("the memory store", (now, maxQueued, elapsedMs, webhook = false, maxKeptBytes) =>
  createMemoryStore({ now, maxQueued, elapsedMs, webhook, maxKeptBytes }),
);

test("some thousands of tasks are created, claimed, ended and listed in seconds", async () => {
  const store = createMemoryStore();
  const count = 5_000;
  for (const n of times(count, (each) => each)) {
    await store.create(newTask(`https://${n % 50}.example.com/`, {}, new Date()));
  }
  for (let claimed = 0; claimed < count; claimed += 1) {
    const { task } = (await store.claim({ leaseMs: minuteMs })) ?? {};
    await store.update(task?.id ?? "", { state: "succeeded" });
  }
  expect((await store.list({ limit: 200, state: "succeeded" })).tasks).toHaveLength(200);
});
