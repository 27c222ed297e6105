import { describe, expect, test } from "vitest";
import type { KeyLimits } from "../../../src/model/access-key.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { fileOf } from "./files.ts";
import { type OpenStore, openStoreHarness, type StoreHarness, times } from "./harness.ts";
import { addKey } from "./turns.ts";

const page = "https://video.example.com/watch";
const tooMany = { code: "quota_exceeded", retryable: true, retryAfterS: expect.any(Number) };
const tooMuch = { code: "quota_exceeded", retryable: false };

export function describeQuotas(open: OpenStore): void {
  describe("lets no more tasks of an owner wait than its key allows:", () => {
    test("of 50 at once exactly as many as the limit are accepted", async () => {
      const { store, add } = await openLimited(open, { max_queued: 20 });
      await Promise.all(times(5, () => add(page, {}, "anna")));
      const others = times(30, (n) => add(page, {}, n % 2 ? "bert" : undefined));
      const outcomes = await Promise.allSettled(times(50, () => add(page, {}, "anna")));
      const refused = outcomes.filter(({ status }) => status === "rejected");
      expect(refused).toMatchObject(times(35, () => ({ reason: tooMany })));
      expect((await store.list({ limit: 50, owner: "anna" })).tasks).toHaveLength(20);
      await Promise.all(others);
    });

    test("the error names the rule and the value", async () => {
      const { add } = await openLimited(open, { max_queued: 1 });
      await add(page, {}, "anna");
      await expect(add(page, {}, "anna")).rejects.toThrow("1 tasks of this key wait, its limit is 1");
    });

    test("a tenth of the queue is left to others, also if many tasks of an owner come at once", async () => {
      const harness = await openStoreHarness(open, { maxQueued: 20 });
      const { store, add } = harness;
      await addKey(harness, "anna", {});
      await addKey(harness, "bert", {});
      const outcomes = await Promise.allSettled(times(30, () => add(page, {}, "anna")));
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(18);
      await expect(add(page, {}, "anna")).rejects.toThrow("18 tasks of this key wait, its limit is 18");
      await Promise.all(times(2, () => add(page, {}, "bert")));
      await expect(add(page, {}, "bert")).rejects.toThrow("the queue is full: 20 tasks, limit 20 (MAX_QUEUED)");
      expect((await store.list({ limit: 50, owner: "anna" })).tasks).toHaveLength(18);
    });

    test("each owner leaves a tenth of what the others leave", async () => {
      const harness = await openStoreHarness(open, { maxQueued: 100 });
      const { store, add } = harness;
      const fill = async (owner: string) => {
        await addKey(harness, owner, {});
        const outcomes = await Promise.allSettled(times(100, () => add(page, {}, owner)));
        const refused = outcomes.filter(({ status }) => status === "rejected");
        expect(refused).toMatchObject(times(refused.length, () => ({ reason: tooMany })));
        return outcomes.length - refused.length;
      };
      expect([await fill("anna"), await fill("bert")]).toEqual([90, 9]);
      await addKey(harness, "carl", {});
      const last = await add(page, {}, "carl");
      await expect(add(page, {}, "carl")).rejects.toThrow("the queue is full: 100 tasks, limit 100 (MAX_QUEUED)");
      await store.delete(last.id);
      const [ended] = (await store.list({ limit: 1, owner: "bert" })).tasks;
      await store.update(ended?.id ?? "", { state: "canceled" });
      await add(page, {}, "bert");
      await expect(store.update(ended?.id ?? "", { state: "queued" })).rejects.toMatchObject(tooMany);
      await add(page, {}, "carl");
    });

    test("two owners that fill the queue at the same time leave places to a third", async () => {
      const harness = await openStoreHarness(open, { maxQueued: 100 });
      const { store, add } = harness;
      for (const owner of ["anna", "bert", "carl"]) await addKey(harness, owner, {});
      const outcomes = await Promise.allSettled(times(200, (n) => add(page, {}, n % 2 ? "anna" : "bert")));
      const refused = outcomes.filter(({ status }) => status === "rejected");
      expect(refused).toMatchObject(times(refused.length, () => ({ reason: tooMany })));
      const { byState } = await store.count();
      expect(byState.queued).toBeGreaterThanOrEqual(90);
      expect(byState.queued).toBeLessThan(100);
      await add(page, {}, "carl");
    });

    test("one owner may fill a queue of fewer than ten", async () => {
      const harness = await openStoreHarness(open, { maxQueued: 9 });
      await addKey(harness, "anna", {});
      await Promise.all(times(9, () => harness.add(page, {}, "anna")));
      await expect(harness.add(page, {}, "anna")).rejects.toThrow("the queue is full: 9 tasks, limit 9 (MAX_QUEUED)");
    });

    test("a claimed, a canceled and a deleted task each free one place", async () => {
      const { store, add, claim } = await openLimited(open, { max_queued: 3 });
      await Promise.all(times(3, () => add(page, {}, "anna")));
      await claim();
      const [second, third] = (await store.list({ limit: 9, state: "queued" })).tasks;
      await store.update(second?.id ?? "", { state: "canceled" });
      await store.delete(third?.id ?? "");
      const outcomes = await Promise.allSettled(times(9, () => add(page, {}, "anna")));
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    });

    test("a client cannot requeue over the limit; a run can", async () => {
      const { store, add, claim } = await openLimited(open, { max_queued: 1 });
      const ended = await add(page, {}, "anna");
      await store.update(ended.id, { state: "canceled" });
      const running = await add(page, {}, "anna");
      await claim();
      const waiting = await add(page, {}, "anna");
      await expect(store.update(ended.id, { state: "queued" })).rejects.toMatchObject(tooMany);
      expect(await store.get(ended.id)).toMatchObject({ state: "canceled" });
      await store.update(running.id, { state: "queued" });
      await expect(add(page, {}, "anna")).rejects.toMatchObject(tooMany);
      await store.delete(running.id);
      await store.delete(waiting.id);
      expect(await store.update(ended.id, { state: "queued" })).toMatchObject({ state: "queued" });
    });

    test("a used idempotency key is answered at the limit, a refused one is left free", async () => {
      const { store, clock } = await openLimited(open, { max_queued: 1 });
      const create = (key: string) => store.create(newTask(page, {}, clock.now(), "anna"), { key, fingerprint: "f" });
      const first = await create("one");
      await expect(create("two")).rejects.toMatchObject(tooMany);
      expect(await create("one")).toEqual(first);
      await store.delete(first.id);
      expect((await create("two")).id).not.toBe(first.id);
    });
  });

  describe("keeps no more bytes of an owner's files than its key allows:", () => {
    test("the file that would exceed the limit is refused, its task unchanged", async () => {
      const harness = await openLimited(open, { max_bytes: 100 });
      const { store, add, claim } = harness;
      await Promise.all(times(3, () => add(page, {}, "anna")));
      const [one, two, three] = [await claim(), await claim(), await claim()];
      const end = ({ task, lease }: typeof one, size: number) =>
        store.update(task.id, { state: "succeeded", file: fileOf(size) }, { lease });
      await end(one, 60);
      await expect(end(two, 41)).rejects.toMatchObject(tooMuch);
      expect(await store.get(two.task.id)).toEqual(two.task);
      await end(two, 40);
      await expect(end(three, 1)).rejects.toThrow("the files of this key need 101 bytes, its limit is 100");
      await store.delete(one.task.id);
      await end(three, 1);
    });

    test("a claim says how many bytes are left at that moment, 0 at least", async () => {
      const harness = await openLimited(open, { max_bytes: 100 });
      const { store, add, claim, expireLeases } = harness;
      const run = async (owner: string | undefined, size: number) => {
        const { id } = await add(page, {}, owner);
        const { bytesLeft } = await claim();
        await store.update(id, { state: "succeeded", file: fileOf(size) });
        return { id, bytesLeft };
      };
      const first = await run("anna", 60);
      expect(first.bytesLeft).toBe(100);
      for (const other of ["bert", undefined]) expect((await run(other, 1_000)).bytesLeft).toBeUndefined();
      expect((await run("anna", 15)).bytesLeft).toBe(40);
      const { id } = await add(page, {}, "anna");
      await store.keys.remove("anna");
      await addKey(harness, "anna", { max_bytes: 70 });
      expect((await claim()).bytesLeft).toBe(0);
      await store.update(first.id, { file: null });
      expireLeases();
      expect(await claim()).toMatchObject({ task: { id, attempts: 1 }, bytesLeft: 55 });
    });

    test("of 50 files at once exactly as many as fit are kept", async () => {
      const { store, add } = await openLimited(open, { max_bytes: 200 });
      const tasks = await Promise.all(times(50, () => add(page, {}, "anna")));
      await Promise.all(tasks.map(({ id }) => store.update(id, { state: "running" })));
      const outcomes = await Promise.allSettled(
        tasks.map(({ id }) => store.update(id, { state: "succeeded", file: fileOf(10) })),
      );
      const refused = outcomes.filter(({ status }) => status === "rejected");
      expect(refused).toMatchObject(times(30, () => ({ reason: tooMuch })));
    });

    test("no task is queued by a client while there is no space for a byte", async () => {
      const { store, add, claim } = await openLimited(open, { max_bytes: 100 });
      const { id } = await add(page, {}, "anna");
      await claim();
      const canceled = await add(page, {}, "anna");
      await store.update(canceled.id, { state: "canceled" });
      await store.update(id, { state: "succeeded", file: fileOf(100) });
      await expect(add(page, {}, "anna")).rejects.toMatchObject(tooMuch);
      await expect(store.update(canceled.id, { state: "queued" })).rejects.toMatchObject(tooMuch);
      await add(page, {}, "bert");
      await store.update(id, { file: null });
      await add(page, {}, "anna");
      await store.update(canceled.id, { state: "queued" });
    });
  });
}

async function openLimited(open: OpenStore, limits: KeyLimits): Promise<StoreHarness> {
  const harness = await openStoreHarness(open);
  await addKey(harness, "anna", limits);
  return harness;
}
