import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { newTask } from "../../src/feed/task-changes.ts";
import { withPacedReads } from "../../src/http/access/paced-reads.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { pageUrl } from "./requests.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

/** Opens a store with two tasks, each of which takes `ms` to read. */
async function openSlow(ms: number) {
  const memory = createMemoryStore();
  const [first, second] = [
    await memory.create(newTask(pageUrl, {}, new Date())),
    await memory.create(newTask(pageUrl, {}, new Date())),
  ];
  const store = withPacedReads({
    ...memory,
    get(id) {
      vi.advanceTimersByTime(ms);
      return memory.get(id);
    },
  });
  const read: string[] = [];
  const get = (id: string, name: string) => void store.get(id).then(() => read.push(name));
  return { store, first, second, read, get };
}

test("of many reads of long records few are done in one turn of the event loop", async () => {
  const { first, read, get } = await openSlow(3);
  for (let n = 0; n < 7; n += 1) get(first.id, `${n}`);
  const counts: number[] = [];
  for (let turn = 0; turn < 5; turn += 1) {
    await setImmediate();
    counts.push(read.length);
  }
  expect(Math.max(...counts.map((count, turn) => count - (counts[turn - 1] ?? 0)))).toBeLessThanOrEqual(4);
  expect(read).toEqual(["0", "1", "2", "3", "4", "5", "6"]);
});

test("those who wait for different tasks take turns", async () => {
  const { first, second, read, get } = await openSlow(10);
  for (const name of ["first", "second", "third"]) get(first.id, name);
  get(second.id, "other");
  await expect.poll(() => read).toEqual(["first", "second", "other", "third"]);
});

test("many reads of short records are done at once, and errors reach who has asked", async () => {
  const { store, first } = await openSlow(0);
  await expect(Promise.all(Array.from({ length: 1_000 }, () => store.get(first.id)))).resolves.toHaveLength(1_000);
  await store.close();
  await expect(store.get(first.id)).rejects.toMatchObject({ code: "unavailable" });
});
