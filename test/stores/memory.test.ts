import { expect, test } from "vitest";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { minuteMs, times } from "../contracts/task-store/harness.ts";

test("changes of an owner's tasks, and claims, do not wait until many of another owner's have changed", async () => {
  const store = createMemoryStore();
  const add = async (owner?: string) => {
    const { id } = await store.create(newTask("https://example.com/", {}, new Date(), owner));
    return id;
  };
  const many = await Promise.all(times(300, () => add("eve")));
  const [canceled, deleted] = [await add("bob"), await add("bob")];
  let changed = 0;
  const all = many.map((id) => store.update(id, { state: "canceled" }).then(() => (changed += 1)));
  await Promise.all([
    store.update(canceled, { state: "canceled" }),
    store.delete(deleted),
    store.claim({ leaseMs: minuteMs }),
  ]);
  expect(changed).toBeLessThan(200);
  await Promise.all(all);
});
