import { describe, expect, test } from "vitest";
import type { State, Task } from "../../../src/model/task.ts";
import type { TaskStore } from "../../../src/stores/store.ts";
import { idsOf, type OpenStore, openStoreHarness, times } from "./harness.ts";

export function describePages(open: OpenStore): void {
  describe("lists in pages:", () => {
    test("an empty store has one empty page", async () => {
      const { store } = await openStoreHarness(open);
      expect(await store.list({ limit: 50 })).toEqual({ tasks: [] });
    });

    test("the newest comes first, also among tasks of the same millisecond", async () => {
      const { store, add } = await openStoreHarness(open);
      const created = await Promise.all(times(200, () => add()));
      const { tasks } = await store.list({ limit: 200 });
      expect(tasks).toEqual(created.toReversed());
    });

    test("a page with exactly the last tasks has no next", async () => {
      const { store, add } = await openStoreHarness(open);
      await Promise.all(times(5, () => add()));
      expect((await store.list({ limit: 6 })).next).toBeUndefined();
      expect((await store.list({ limit: 5 })).next).toBeUndefined();
      expect((await store.list({ limit: 4 })).next).toBeGreaterThan(0);
    });

    test("following next lists every task once, with a state or without", async () => {
      const { store, add } = await openStoreHarness(open);
      const created = await Promise.all(times(630, () => add()));
      const canceled = created.filter((_, index) => index % 3 === 0);
      const others = created.filter((_, index) => index % 3 !== 0);
      for (const { id } of canceled) await store.update(id, { state: "canceled" });
      expect(await walk(store, 37)).toEqual(idsOf(created).toReversed());
      expect(await walk(store, 200, "canceled")).toEqual(idsOf(canceled).toReversed());
      expect(await walk(store, 33, "queued")).toEqual(idsOf(others).toReversed());
      expect(await walk(store, 200, "failed")).toEqual([]);
    });

    test.each([undefined, "queued" as const])(
      "tasks created or deleted between pages do not shift others (state: %s)",
      async (state) => {
        const { store, add } = await openStoreHarness(open);
        const created = await Promise.all(times(40, () => add()));
        const filter = state === undefined ? {} : { state };
        const first = await store.list({ limit: 10, ...filter });
        await Promise.all(times(5, () => add()));
        const gone = [created[35], created[30], created[25], created[0]].map((task) => task?.id);
        for (const id of gone) await store.delete(id ?? "");
        const rest = await walk(store, 10, state, first.next);
        expect(idsOf(first.tasks)).toEqual(idsOf(created.slice(30)).toReversed());
        expect(rest).toEqual(
          idsOf(created.slice(0, 30))
            .toReversed()
            .filter((id) => !gone.includes(id)),
        );
      },
    );

    test("a task is listed under its present state, in its old place", async () => {
      const { store, add } = await openStoreHarness(open);
      const created = await Promise.all(times(3, () => add()));
      const middle = created[1]?.id ?? "";
      await store.update(middle, { state: "canceled" });
      expect(idsOf((await store.list({ limit: 9, state: "canceled" })).tasks)).toEqual([middle]);
      await store.update(middle, { state: "queued" });
      expect(await walk(store, 1, "queued")).toEqual(idsOf(created).toReversed());
    });

    test("the sequence number of a deleted task is not reused", async () => {
      const { store, add } = await openStoreHarness(open);
      await add();
      const second = await add();
      const { next: before = Infinity } = await store.list({ limit: 1 });
      await store.delete(second.id);
      await add();
      const { next: after = 0 } = await store.list({ limit: 1 });
      expect(after).toBeGreaterThan(before);
      expect(Number.isSafeInteger(after)).toBe(true);
    });
  });
}

/** Returns the ids of all pages from `before` on. */
async function walk(store: TaskStore, limit: number, state?: State, before?: number): Promise<string[]> {
  const tasks: Task[] = [];
  let next = before ?? Number.MAX_SAFE_INTEGER;
  while (next > 0) {
    const page = await store.list({ limit, before: next, ...(state && { state }) });
    expect(page.tasks.length).toBeLessThanOrEqual(limit);
    tasks.push(...page.tasks);
    next = page.next ?? 0;
  }
  return idsOf(tasks);
}
