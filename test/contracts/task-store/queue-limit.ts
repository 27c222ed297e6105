import { describe, expect, test } from "vitest";
import { newTask } from "../../../src/feed/task-changes.ts";
import { type OpenStore, openStoreHarness, times, type StoreHarness } from "./harness.ts";

const full = { name: "ServiceError", code: "unavailable", retryAfterS: expect.any(Number) };

export function describeQueueLimit(open: OpenStore): void {
  describe("limits its queue:", () => {
    test("tasks are accepted up to the limit and no further, also concurrently", async () => {
      const { store, add } = await openStoreHarness(open, { maxQueued: 5 });
      const outcomes = await Promise.allSettled(times(9, () => add()));
      const refused = outcomes.filter(({ status }) => status === "rejected");
      expect(refused).toEqual(times(4, () => ({ status: "rejected", reason: expect.anything() })));
      expect(refused).toMatchObject(times(4, () => ({ reason: full })));
      expect((await store.list({ limit: 9 })).tasks).toHaveLength(5);
      await expect(add()).rejects.toMatchObject(full);
    });

    test("the error names the rule and the value", async () => {
      const { add } = await openStoreHarness(open, { maxQueued: 1 });
      await add();
      await expect(add()).rejects.toThrow("the queue is full: 1 tasks, limit 1 (MAX_QUEUED)");
    });

    const ways: Record<string, (harness: StoreHarness, id: string) => Promise<unknown>> = {
      claimed: ({ claim }) => claim(),
      canceled: ({ store }, id) => store.update(id, { state: "canceled" }),
      deleted: ({ store }, id) => store.delete(id),
    };
    test.each(Object.entries(ways))("a task that is %s frees one place", async (_, leave) => {
      const harness = await openStoreHarness(open, { maxQueued: 1 });
      await leave(harness, (await harness.add()).id);
      await harness.add();
      await expect(harness.add()).rejects.toMatchObject(full);
    });

    test("a running task frees no place when it is claimed again or ends", async () => {
      const { store, clock, add, claim } = await openStoreHarness(open, { maxQueued: 1 });
      const { id } = await add();
      await claim();
      await add();
      clock.advance(10 * 60_000);
      expect((await claim()).task.id).toBe(id);
      await store.update(id, { state: "failed" });
      await store.delete(id);
      await expect(add()).rejects.toMatchObject(full);
    });

    test("a requeued task is always accepted, and counts", async () => {
      const { store, add, claim } = await openStoreHarness(open, { maxQueued: 2 });
      const { id } = await add();
      await claim();
      await add();
      await add();
      await store.update(id, { state: "queued" });
      expect((await store.list({ limit: 9, state: "queued" })).tasks).toHaveLength(3);
      await store.delete(id);
      await expect(add()).rejects.toMatchObject(full);
    });

    test("refused writes do not count", async () => {
      const { store, clock, add } = await openStoreHarness(open, { maxQueued: 3 });
      const task = await add();
      await Promise.allSettled([
        store.create(task),
        store.update(task.id, { state: "succeeded" }),
        store.delete("unknown"),
        store.create(newTask("https://video.example.com/", {}, clock.now())),
        store.create(task),
      ]);
      await add();
      await expect(add()).rejects.toMatchObject(full);
    });

    test("a full queue still accepts a used key, and leaves a refused key free", async () => {
      const { store, clock } = await openStoreHarness(open, { maxQueued: 1 });
      const create = (key: string) => {
        const task = newTask("https://video.example.com/", {}, clock.now());
        return store.create(task, { key, fingerprint: "f" });
      };
      const first = await create("one");
      await expect(create("two")).rejects.toMatchObject(full);
      expect(await create("one")).toEqual(first);
      await store.delete(first.id);
      const second = await create("two");
      expect(second.id).not.toBe(first.id);
    });
  });
}
