import { expect, test } from "vitest";
import { noTasks } from "../../../src/feed/collection-changes.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { createMemoryStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { retryChange } from "../../../src/stores/member-rules.ts";
import { pageInfo } from "../../page-info.ts";

const count = 40;
const minuteMs = 60_000;
const growth = { slice: { offset: 0, made: 0 } };
const info = pageInfo({ description: "x".repeat(100_000) });
const failed = { state: "failed", error: { code: "no_media", message: "there is none", retryable: false } } as const;

/** Opens a store with a collection of anna whose members have failed, and have records of 100 kB each. */
async function openLongMembers() {
  const store = createMemoryStore();

  async function beginCollection() {
    const { id } = await store.create(newTask("https://example.com/list", { entries: "all" }, new Date(), "anna"));
    const { lease } = (await store.claim({ leaseMs: minuteMs }))!;
    await store.update(id, { kind: "collection", counts: noTasks, growth }, { lease });
    const members = Array.from({ length: count }, (_, n) => {
      const task = newTask(`https://example.com/${n}`, {}, new Date(), "anna");
      return { index: n + 1, task: { ...task, collection: { id, index: n + 1, title: "A list" } } };
    });
    return { id, grow: () => store.grow(id, { lease, members, isReusing: true, growth: null }) };
  }

  const { id, grow } = await beginCollection();
  await grow();
  for (let n = 0; n < count; n += 1) {
    const { task } = (await store.claim({ leaseMs: minuteMs }))!;
    await store.update(task.id, { info });
    await store.update(task.id, failed);
  }

  async function retry(): Promise<number[]> {
    await store.update(id, retryChange);
    const { lease } = (await store.claim({ leaseMs: minuteMs }))!;
    const indexes: number[] = [];
    for (let last: number | undefined = 0; last !== undefined;) {
      const { task, isWhole } = await store.retryMembers(id, lease);
      expect(isWhole).toBe(true);
      last = task.growth?.retried;
      if (last !== undefined) indexes.push(last);
    }
    return indexes;
  }

  /** Returns how many tasks of bob are stored, one after the other, before that is done. */
  async function countOthers(change: () => Promise<unknown>): Promise<number> {
    const changed = change().then(() => undefined);
    for (let others = 0; ; others += 1) {
      const other = store.create(newTask("https://example.org/", {}, new Date(), "bob"));
      if ((await Promise.race([other, changed])) === undefined) return others;
    }
  }

  return { store, id, beginCollection, retry, countOthers };
}

test("members with long records are queued again a few at a time", async () => {
  const { store, id, retry } = await openLongMembers();
  expect(await retry()).toEqual([10, 20, 30, 40]);
  expect((await store.get(id))?.counts).toEqual({ ...noTasks, queued: count });
});

test("others' writes come between those of members with long records that are canceled, and removed", async () => {
  const { store, id, retry, countOthers } = await openLongMembers();
  await retry();
  expect(await countOthers(() => store.update(id, { state: "canceled" }))).toBeGreaterThanOrEqual(2);
  expect((await store.get(id))?.counts).toEqual({ ...noTasks, canceled: count });
  expect(await countOthers(() => store.delete(id))).toBeGreaterThanOrEqual(2);
  expect((await store.count()).byState.canceled).toBe(0);
});

test("others' writes come between those of a collection that gets tasks with long records as members", async () => {
  const { store, retry, beginCollection, countOthers } = await openLongMembers();
  await retry();
  for (let n = 0; n < count; n += 1) await store.claim({ leaseMs: minuteMs });
  const { id, grow } = await beginCollection();
  expect(await countOthers(grow)).toBeGreaterThanOrEqual(2);
  expect((await store.get(id))?.counts).toEqual({ ...noTasks, running: count });
});
