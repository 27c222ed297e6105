import { describe, expect, test } from "vitest";
import { states } from "../../../src/model/task.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { moveTo } from "./transitions.ts";
import { samplePageInfo } from "./page-info.ts";
import { type OpenStore, openStoreHarness, times } from "./harness.ts";

export function describeRecords(open: OpenStore): void {
  describe("keeps records:", () => {
    test("create returns the task as it was passed, and get finds it by its id", async () => {
      const { store, clock } = await openStoreHarness(open);
      const task = newTask("https://video.example.com/1", { max_height: 720 }, clock.now());
      expect(await store.create(task)).toEqual(task);
      expect(await store.get(task.id)).toEqual(task);
    });

    test("every field of a large record comes back unchanged", async () => {
      const { store, add } = await openStoreHarness(open);
      const { id } = await add();
      const info = { ...samplePageInfo(), tags: times(10_000, (n) => `tag "${n}"\n`) };
      const updated = await store.update(id, { info });
      expect(updated.info).toEqual(info);
      expect(await store.get(id)).toEqual(updated);
    });

    test("get returns undefined for an unknown id", async () => {
      const { store } = await openStoreHarness(open);
      expect(await store.get("unknown")).toBeUndefined();
    });

    test("update and delete refuse an unknown id with not_found", async () => {
      const { store } = await openStoreHarness(open);
      const refusal = { name: "ServiceError", code: "not_found" };
      await expect(store.update("unknown", { attempts: 1 })).rejects.toMatchObject(refusal);
      await expect(store.delete("unknown")).rejects.toMatchObject(refusal);
    });

    test.each(states)("delete removes a %s task and returns what was removed", async (state) => {
      const harness = await openStoreHarness(open);
      const task = await moveTo(harness, state);
      expect(await harness.store.delete(task.id)).toEqual(task);
      expect(await harness.store.get(task.id)).toBeUndefined();
      expect(await harness.store.list({ limit: 10 })).toEqual({ tasks: [] });
      expect(await harness.store.list({ limit: 10, state })).toEqual({ tasks: [] });
      await expect(harness.store.delete(task.id)).rejects.toMatchObject({ code: "not_found" });
    });

    test("a taken id is refused with conflict, and its task stays unchanged", async () => {
      const { store, add } = await openStoreHarness(open);
      const task = await add();
      const second = { ...task, url: "https://other.example.com/" };
      await expect(store.create(second)).rejects.toMatchObject({ code: "conflict" });
      expect((await store.list({ limit: 10 })).tasks).toEqual([task]);
    });

    test("a change without a state keeps the state and sets updated_at", async () => {
      const { store, clock, add } = await openStoreHarness(open);
      const task = await add();
      clock.advance(1500);
      const updated_at = clock.now().toISOString();
      expect(await store.update(task.id, { attempts: 4 })).toEqual({
        ...task,
        attempts: 4,
        updated_at,
      });
    });

    test("of many concurrent cancels one succeeds and the others conflict", async () => {
      const { store, add } = await openStoreHarness(open);
      const { id } = await add();
      const cancels = times(50, () => store.update(id, { state: "canceled" }));
      const outcomes = await Promise.allSettled(cancels);
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      expect(outcomes.filter(isConflict)).toHaveLength(49);
    });

    test("a refused write does not affect the writes of the same moment", async () => {
      const { store, add } = await openStoreHarness(open);
      const ended = await add();
      await store.update(ended.id, { state: "canceled" });
      const outcomes = await Promise.allSettled([
        add(),
        store.update(ended.id, { state: "succeeded" }),
        add(),
        store.delete("unknown"),
        add(),
      ]);
      expect(outcomes.map(({ status }) => status === "fulfilled")).toEqual([true, false, true, false, true]);
      expect((await store.list({ limit: 10 })).tasks).toHaveLength(4);
    });

    test("ping resolves while the store can take writes, an empty one too", async () => {
      const { store } = await openStoreHarness(open);
      await expect(store.ping()).resolves.toBeUndefined();
    });
  });
}

function isConflict(outcome: PromiseSettledResult<unknown>): boolean {
  if (outcome.status === "fulfilled") return false;
  expect(outcome.reason).toMatchObject({ name: "ServiceError", code: "conflict" });
  return true;
}
