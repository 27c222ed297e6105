import { describe, expect, onTestFinished, test } from "vitest";
import type { Task } from "../../../src/model/task.ts";
import { idsOf, minuteMs, type OpenStore, openStoreHarness, type StoreHarness, times } from "./harness.ts";

const damaged = { name: "ServiceError", code: "internal", retryable: false };

/** What may stand in place of a task. */
const documents = {
  "text that is no JSON": () => "{",
  "an empty text": () => "",
  null: () => "null",
  "a list": () => "[]",
  "an object without members": () => "{}",
  "a task without a state": ({ state: _state, ...task }: Task) => JSON.stringify(task),
  "a task with page information that is none": (task: Task) => JSON.stringify({ ...task, info: 5 }),
};

export function describeDamage(open: OpenStore): void {
  const { replaceDocuments } = open;
  if (replaceDocuments === undefined) return;

  /** Stores tasks, then opens the store again with the documents of these replaced. */
  async function openDamaged(count: number, replaced: number[], document = (_task: Task) => "{") {
    const harness = await openStoreHarness(open);
    const created = await Promise.all(times(count, () => harness.add()));
    return { created, ...(await replace(harness, created, replaced, document)) };
  }

  async function replace(
    { store }: StoreHarness,
    created: readonly Task[],
    replaced: number[],
    document: (task: Task) => string,
  ) {
    const tasks = created.filter((_, index) => replaced.includes(index));
    const made = await replaceDocuments!(store, new Map(tasks.map((t) => [t.id, document(t)])));
    onTestFinished(() => made.store.close());
    return made;
  }

  describe("survives damaged records:", () => {
    test.each(Object.entries(documents))("%s is not listed, and is logged once", async (_what, document) => {
      const { created, store, log } = await openDamaged(3, [1], document);
      const [old, middle, young] = idsOf(created);
      for (const query of [{}, { state: "queued" as const }, {}]) {
        const { tasks } = await store.list({ limit: 10, ...query });
        expect(idsOf(tasks)).toEqual([young, old]);
      }
      expect(log).toEqual([expect.objectContaining({ task: middle, seq: expect.any(Number) })]);
    });

    test("pages around them have every other task once", async () => {
      const replaced = [0, 3, 4, 5, 9, 19];
      const { created, store } = await openDamaged(20, replaced);
      const seen: string[] = [];
      let before: number | undefined;
      do {
        const page = await store.list({ limit: 3, ...(before && { before }) });
        seen.push(...idsOf(page.tasks));
        before = page.next;
      } while (before !== undefined);
      const whole = created.filter((_, index) => !replaced.includes(index));
      expect(seen).toEqual(idsOf(whole).toReversed());
    });

    test("claims pass over them", async () => {
      const { created, store } = await openDamaged(4, [0, 2]);
      const claimed = [await store.claim({ leaseMs: minuteMs }), await store.claim({ leaseMs: minuteMs })];
      expect(claimed.map((claim) => claim?.task.id)).toEqual([created[1]?.id, created[3]?.id]);
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    });

    test("they count by the state that they had, but are not the oldest queued one", async () => {
      const { created, store } = await openDamaged(4, [0, 1]);
      const { byState, oldestQueuedAt } = await store.count();
      expect([byState.queued, oldestQueuedAt]).toEqual([4, created[2]?.created_at]);
    });

    test("one that is asked for by its id is a typed error; deleting it removes it", async () => {
      const { created, store } = await openDamaged(2, [0]);
      const [{ id } = { id: "" }, other] = created;
      const refusal = {
        ...damaged,
        message: `the record of task ${id} is damaged: it is not JSON`,
      };
      await expect(store.get(id)).rejects.toMatchObject(refusal);
      await expect(store.update(id, { state: "canceled" })).rejects.toMatchObject(refusal);
      expect(await store.delete(id)).toBeUndefined();
      expect(await store.get(id)).toBeUndefined();
      await expect(store.delete(id)).rejects.toMatchObject({ code: "not_found" });
      expect((await store.list({ limit: 10 })).tasks).toEqual([other]);
    });
  });
}
