import { expect, test } from "vitest";
import { newTask } from "../../../src/feed/task-changes.ts";
import { minuteMs } from "../../contracts/task-store/harness.ts";
import { openDatabase } from "../../postgres/database.ts";
import { openClockedStore } from "./clocked-store.ts";

test("a queued task is claimed although the database's clock was set back by a day since", async () => {
  let elapsedMs = 24 * 60 * minuteMs;
  const store = await openClockedStore({
    url: await openDatabase(),
    now: () => new Date(),
    elapsedMs: () => elapsedMs,
  });
  const { id } = await store.create(newTask("https://video.example.com/", {}, new Date()));

  elapsedMs = 0;

  expect((await store.claim({ leaseMs: minuteMs }))?.task.id).toBe(id);
  await store.close();
});
