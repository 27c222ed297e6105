import { describe, expect, test } from "vitest";
import { type OpenStore, openStoreHarness, times } from "./harness.ts";
import { noTasks } from "../../../src/feed/collection-changes.ts";

export function describeCounts(open: OpenStore): void {
  describe("counts its tasks:", () => {
    test("an empty store has noTasks, and no oldest one", async () => {
      const { store } = await openStoreHarness(open);
      expect(await store.count()).toEqual({ byState: noTasks, oldestQueuedAt: null });
    });

    test("each by its state now, whatever it was before", async () => {
      const { store, add, claim } = await openStoreHarness(open);
      const [first, second, third] = await Promise.all(times(5, () => add()));
      await claim();
      await store.update(first!.id, { state: "succeeded" });
      await claim();
      await store.update(second!.id, { state: "failed" });
      await store.update(third!.id, { state: "canceled" });
      await claim();
      const counts = { succeeded: 1, failed: 1, canceled: 1, running: 1, queued: 1 };
      expect((await store.count()).byState).toEqual(counts);
      await store.update(second!.id, { state: "queued" });
      await store.delete(first!.id);
      const later = { ...counts, failed: 0, queued: 2, succeeded: 0 };
      expect((await store.count()).byState).toEqual(later);
    });

    test("refused writes do not count", async () => {
      const { store, add } = await openStoreHarness(open);
      const task = await add();
      await Promise.allSettled([
        store.create(task),
        store.update(task.id, { state: "succeeded" }),
        store.delete("unknown"),
      ]);
      expect((await store.count()).byState).toEqual({ ...noTasks, queued: 1 });
    });

    test("the oldest queued one is that which was created first, also if it was requeued", async () => {
      const { store, clock, add, claim } = await openStoreHarness(open);
      const first = await add();
      clock.advance(5_000);
      const second = await add();
      expect((await store.count()).oldestQueuedAt).toBe(first.created_at);
      await claim();
      expect((await store.count()).oldestQueuedAt).toBe(second.created_at);
      await store.update(first.id, { state: "queued" });
      expect((await store.count()).oldestQueuedAt).toBe(first.created_at);
      await store.delete(first.id);
      await store.update(second.id, { state: "canceled" });
      expect((await store.count()).oldestQueuedAt).toBeNull();
    });

    test("what was returned belongs to the caller", async () => {
      const { store, add } = await openStoreHarness(open);
      await add();
      (await store.count()).byState.queued = 7;
      expect((await store.count()).byState.queued).toBe(1);
    });
  });
}
