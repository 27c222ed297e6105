import { describe, expect, test } from "vitest";
import { newTask } from "../../../src/feed/task-changes.ts";
import { collectEvents, idsOf, type OpenStore, openStoreHarness, type StoreHarness, times } from "./harness.ts";

const page = "https://video.example.com/watch";

export function describeOwners(open: OpenStore): void {
  describe("keeps the tasks of owners apart:", () => {
    test("a task keeps its owner through every change; one without an owner has none", async () => {
      const { store, add, claim } = await openStoreHarness(open);
      const hers = await add(page, {}, "anna");
      const { task } = await claim();
      expect([hers.owner, task.owner]).toEqual(["anna", "anna"]);
      expect(await store.update(hers.id, { state: "failed" })).toMatchObject({ owner: "anna" });
      expect(await store.get(hers.id)).toMatchObject({ owner: "anna" });
      expect(await store.delete(hers.id)).toMatchObject({ owner: "anna" });
      expect(await add()).not.toHaveProperty("owner");
    });

    test("pages of an owner have each of its tasks once, with a state or without", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const created = await Promise.all(times(90, (n) => harness.add(page, {}, [undefined, "anna", "bert"][n % 3])));
      const hers = created.filter(({ owner }) => owner === "anna");
      const canceled = hers.filter((_, n) => n % 2 === 0);
      await Promise.all(canceled.map(({ id }) => store.update(id, { state: "canceled" })));
      const list = (query: object) => walk(harness, { limit: 7, ...query });
      expect(await list({ owner: "anna" })).toEqual(idsOf(hers).toReversed());
      expect(await list({ owner: "anna", state: "canceled" })).toEqual(idsOf(canceled).toReversed());
      expect(await list({ owner: "nobody" })).toEqual([]);
      expect(await list({ owner: "\0" })).toEqual([]);
      expect(await list({})).toEqual(idsOf(created).toReversed());
    });

    test("events say whose task has changed, also once it is deleted", async () => {
      const { store, add } = await openStoreHarness(open);
      const { take } = collectEvents(store);
      const hers = await add(page, {}, "anna");
      const nobodys = await add();
      await store.update(hers.id, { attempts: 1 });
      await store.delete(hers.id);
      await store.delete(nobodys.id);
      const owners = (await take(5)).map(({ owner }) => owner);
      expect(owners).toEqual(["anna", null, "anna", "anna", null]);
    });

    test("the same idempotency key of two owners, or of nobody, is three keys", async () => {
      const { store, clock } = await openStoreHarness(open);
      const create = (owner: string | undefined, fingerprint: string) =>
        store.create(newTask(page, {}, clock.now(), owner), { key: "k", fingerprint });
      const owners = ["anna", "bert", undefined];
      const first = await Promise.all(owners.map((owner) => create(owner, `${owner}`)));
      expect(new Set(idsOf(first)).size).toBe(3);
      const second = await Promise.all(owners.map((owner) => create(owner, `${owner}`)));
      expect(second).toEqual(first);
      await expect(create("anna", "bert")).rejects.toMatchObject({
        code: "idempotency_mismatch",
        message: expect.stringContaining('the idempotency key "k" was'),
      });
    });
  });
}

/** Returns the ids of all pages. */
async function walk({ store }: StoreHarness, query: { limit: number }): Promise<string[]> {
  const ids: string[] = [];
  let next: number | undefined = Number.MAX_SAFE_INTEGER;
  while (next !== undefined) {
    const listed = await store.list({ ...query, before: next });
    ids.push(...idsOf(listed.tasks));
    next = listed.next;
  }
  return ids;
}
