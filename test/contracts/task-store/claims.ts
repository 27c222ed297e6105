import { describe, expect, test } from "vitest";
import type { ServiceError } from "../../../src/model/errors.ts";
import type { TaskStore } from "../../../src/stores/store.ts";
import { moveTo } from "./transitions.ts";
import { idsOf, minuteMs, type OpenStore, openStoreHarness, times } from "./harness.ts";

export function describeClaims(open: OpenStore): void {
  describe("hands tasks to claims:", () => {
    test("an empty store has none", async () => {
      const { store } = await openStoreHarness(open);
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    });

    test("a claimed task runs, with one more attempt and its start time", async () => {
      const { store, clock, add, claim } = await openStoreHarness(open);
      const { id } = await add();
      clock.advance(1000);
      const { task, lease } = await claim();
      const at = clock.now().toISOString();
      expect(task).toMatchObject({ id, state: "running", attempts: 1, started_at: at });
      expect(lease).not.toBe("");
      expect(await store.get(id)).toEqual(task);
      expect((await store.list({ limit: 9, state: "running" })).tasks).toEqual([task]);
    });

    test("the oldest goes first, whatever its host", async () => {
      const { store, add } = await openStoreHarness(open);
      const created = await Promise.all(times(30, (n) => add(`https://${n % 4}.example.com/watch`)));
      expect(await drain(store)).toEqual(idsOf(created));
    });

    test("concurrent claims never get the same task", async () => {
      const { store, add } = await openStoreHarness(open);
      const created = await Promise.all(times(100, (n) => add(`https://${n % 3}.example.com/`)));
      const claims = await Promise.all(times(200, () => store.claim({ leaseMs: minuteMs })));
      const claimed = claims.filter((claim) => claim !== undefined);
      expect(claimed.map(({ task }) => task.id)).toEqual(idsOf(created));
      expect(new Set(claimed.map(({ lease }) => lease)).size).toBe(100);
    });

    test("tasks that are created and claimed at once are all claimed", async () => {
      const { store, add } = await openStoreHarness(open);
      const claim = () => store.claim({ leaseMs: minuteMs });
      const [first, one, second, two] = await Promise.all([add(), claim(), add(), claim()]);
      const claimed = [one, two].flatMap((found) => found?.task.id ?? []);
      claimed.push(...(await drain(store)));
      expect(claimed.toSorted()).toEqual(idsOf([first, second]).toSorted());
    });

    test("tasks that are created together with one whose id is taken are claimed", async () => {
      const { store, add, claim } = await openStoreHarness(open);
      await add();
      const { task } = await claim();
      const addAgain = () => store.create(task).catch(({ code }: ServiceError) => code);
      const [first, code, second] = await Promise.all([add(), addAgain(), add()]);
      expect(code).toBe("conflict");
      const claimed = await drain(store);
      expect(claimed.toSorted()).toEqual(idsOf([first, second]).toSorted());
    });

    test("tasks of excepted hosts are skipped; the port belongs to the host", async () => {
      const { store, add } = await openStoreHarness(open);
      const urls = ["https://a.test/1", "https://a.test:8443/", "https://b.test/", "https://a.test/2"];
      const [a1, port, b, a2] = idsOf(await Promise.all(urls.map((url) => add(url))));
      expect(await drain(store, ["a.test", "b.test", "none.test", "a.test"])).toEqual([port]);
      expect(await drain(store, ["a.test"])).toEqual([b]);
      expect(await drain(store, ["a.test", "b.test"])).toEqual([]);
      expect(await drain(store, [])).toEqual([a1, a2]);
    });

    test("a thousand tasks of an excepted host do not hide a younger one of another", async () => {
      const { store, add, claim } = await openStoreHarness(open);
      const busy = await Promise.all(times(1000, () => add("https://busy.test/")));
      const other = await add("https://other.test/");
      expect(await drain(store, ["busy.test"])).toEqual([other.id]);
      expect((await claim()).task.id).toBe(busy[0]?.id);
    });

    test("a requeued task waits until its time, then goes before younger ones", async () => {
      const { store, clock, add, claim } = await openStoreHarness(open);
      const old = await add("https://a.test/");
      await claim();
      const runAfter = new Date(clock.now().getTime() + 5000);
      await store.update(old.id, { state: "queued" }, { runAfter });
      expect(await drain(store)).toEqual([]);
      const young = [await add("https://a.test/"), await add("https://b.test/")];
      clock.advance(4999);
      expect(await store.claim({ leaseMs: minuteMs, exceptHosts: ["a.test"] })).toMatchObject({
        task: { id: young[1]?.id },
      });
      clock.advance(1);
      expect(await drain(store)).toEqual([old.id, young[0]?.id]);
    });

    test("a task requeued without a time can be claimed at once, as a further attempt", async () => {
      const { store, add, claim } = await openStoreHarness(open);
      const { id } = await add();
      await claim();
      await store.update(id, { state: "failed" });
      expect(await drain(store)).toEqual([]);
      await store.update(id, { state: "queued" });
      expect((await claim()).task).toMatchObject({ id, attempts: 2 });
    });

    test("canceling ends a delay: requeued, the task can be claimed at once", async () => {
      const { store, clock, add, claim } = await openStoreHarness(open);
      const { id } = await add();
      await claim();
      const runAfter = new Date(clock.now().getTime() + minuteMs);
      await store.update(id, { state: "queued" }, { runAfter });
      await store.update(id, { state: "canceled" });
      clock.advance(minuteMs);
      expect(await drain(store)).toEqual([]);
      await store.update(id, { state: "queued" });
      expect(await drain(store)).toEqual([id]);
    });

    test("claims get only queued tasks", async () => {
      const harness = await openStoreHarness(open);
      for (const state of ["running", "succeeded", "failed", "canceled"] as const) {
        await moveTo(harness, state);
      }
      const queued = await moveTo(harness, "queued");
      const deleted = await harness.add();
      await harness.store.delete(deleted.id);
      expect(await drain(harness.store)).toEqual([queued.id]);
    });

    test("claims continue after a canceled and a deleted task", async () => {
      const { store, add } = await openStoreHarness(open);
      const [first, second, third] = idsOf(await Promise.all(times(3, () => add())));
      await store.update(first ?? "", { state: "canceled" });
      await store.delete(second ?? "");
      expect(await drain(store)).toEqual([third]);
    });

    test("a change of a queued task keeps its place", async () => {
      const { store, add } = await openStoreHarness(open);
      const created = await Promise.all(times(3, () => add()));
      await store.update(created[0]?.id ?? "", { attempts: 7 });
      expect(await drain(store)).toEqual(idsOf(created));
    });
  });
}

/** Claims until nothing is left. Returns the ids in the order of the claims. */
async function drain(store: TaskStore, exceptHosts: string[] = []): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const claim = await store.claim({ leaseMs: minuteMs, exceptHosts });
    if (claim === undefined) return ids;
    ids.push(claim.task.id);
  }
}
