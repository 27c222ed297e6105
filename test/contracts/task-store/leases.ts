import { describe, expect, test } from "vitest";
import { minuteMs, type OpenStore, openStoreHarness, times } from "./harness.ts";

const conflict = { name: "ServiceError", code: "conflict" };

export function describeLeases(open: OpenStore): void {
  const { slackMs = 0 } = open;

  describe("leases tasks:", () => {
    test("a request to finish stays when the worker dies or the run is interrupted, until the end", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { id } = await harness.add();
      const first = await harness.claim();
      const events: string[] = [];
      store.events.subscribe(({ json }) => void events.push(json));
      const asked = await store.update(id, { finish_requested: true }, { from: ["running"] });
      expect(asked).toMatchObject({ state: "running", finish_requested: true });
      expect(await store.heartbeat(id, first.lease, minuteMs)).toBe(true);
      harness.expireLeases();
      const second = await harness.claim();
      expect(second.task.finish_requested).toBe(true);
      await store.update(id, { state: "queued" }, { lease: second.lease });
      const third = await harness.claim();
      expect(third.task.finish_requested).toBe(true);
      const ended = await store.update(id, { state: "failed" }, { lease: third.lease });
      expect(ended).not.toHaveProperty("finish_requested");
      expect(await store.get(id)).toEqual(ended);
      await expect.poll(() => events.some((json) => json.includes('"finish_requested":true'))).toBe(true);
    });

    test("the next claim gets a task whose lease has expired, in the same attempt", async () => {
      const { store, clock, add, claim } = await openStoreHarness(open);
      const { id } = await add();
      const first = await claim();
      await store.update(id, { progress });
      clock.advance(minuteMs - 1);
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
      clock.advance(1 + slackMs);
      const second = await claim();
      const started_at = clock.now().toISOString();
      expect(second.task).toMatchObject({
        id,
        state: "running",
        attempts: 1,
        started_at,
        progress,
      });
      expect(second.lease).not.toBe(first.lease);
      expect(await store.get(id)).toEqual(second.task);
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    });

    test("a task whose lease has expired goes before younger ones, unless excepted", async () => {
      const { store, add, claim, expireLeases } = await openStoreHarness(open);
      const old = await add("https://a.test/");
      await claim();
      const young = await add("https://b.test/");
      expireLeases();
      const other = await store.claim({ leaseMs: minuteMs, exceptHosts: ["a.test"] });
      expect(other?.task.id).toBe(young.id);
      expect((await claim()).task.id).toBe(old.id);
    });

    test("tasks claimed at the same moment have separate leases", async () => {
      const { store, clock, add, claim } = await openStoreHarness(open);
      await Promise.all(times(4, () => add()));
      const [first, second, third, fourth] = await Promise.all(times(4, () => claim()));
      await store.update(third?.task.id ?? "", { state: "succeeded" });
      clock.advance(minuteMs / 2);
      await store.heartbeat(second?.task.id ?? "", second?.lease ?? "", minuteMs);
      clock.advance(minuteMs / 2 + slackMs);
      expect((await claim()).task.id).toBe(first?.task.id);
      expect((await claim()).task.id).toBe(fourth?.task.id);
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    });

    test("a heartbeat extends the lease and does not change the task", async () => {
      const { store, clock, add, claim } = await openStoreHarness(open);
      const { id } = await add();
      const { task, lease } = await claim();
      clock.advance(minuteMs - 1);
      expect(await store.heartbeat(id, lease, minuteMs)).toBe(true);
      clock.advance(minuteMs - 1);
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
      expect(await store.get(id)).toEqual(task);
      clock.advance(1 + slackMs);
      expect((await claim()).task.id).toBe(id);
    });

    test("a heartbeat under an unknown lease returns false", async () => {
      const { store, add, claim } = await openStoreHarness(open);
      const { id } = await add();
      expect(await store.heartbeat(id, "", minuteMs)).toBe(false);
      const { lease } = await claim();
      expect(await store.heartbeat(id, `${lease}x`, minuteMs)).toBe(false);
      expect(await store.heartbeat("unknown", lease, minuteMs)).toBe(false);
    });

    test("a lost lease can neither change nor keep the task", async () => {
      const { store, add, claim, expireLeases } = await openStoreHarness(open);
      const { id } = await add();
      const { lease } = await claim();
      expireLeases();
      const { task } = await claim();
      await expect(store.update(id, { state: "succeeded" }, { lease })).rejects.toMatchObject(conflict);
      expect(await store.heartbeat(id, lease, minuteMs)).toBe(false);
      expect(await store.get(id)).toEqual(task);
    });

    test("an expired lease allows changes until another claim takes the task", async () => {
      const { store, add, claim, expireLeases } = await openStoreHarness(open);
      await add("https://a.test/");
      const { task, lease } = await claim();
      expireLeases();
      const exceptHosts = ["a.test"];
      expect(await store.claim({ leaseMs: minuteMs, exceptHosts })).toBeUndefined();
      await store.update(task.id, { attempts: 5 }, { lease });
      const ended = await store.update(task.id, { state: "succeeded" }, { lease });
      expect(ended).toMatchObject({ state: "succeeded", attempts: 5 });
      expireLeases();
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    });

    test("a late heartbeat keeps the task, unless the store noticed the expiry", async () => {
      const { store, add, claim, expireLeases } = await openStoreHarness(open);
      const { id } = await add();
      const { lease } = await claim();
      expireLeases();
      const isKept = await store.heartbeat(id, lease, minuteMs);
      const next = await store.claim({ leaseMs: minuteMs });
      expect(next?.task.id).toBe(isKept ? undefined : id);
    });

    test("a change under an expired lease does not hide the task from claims", async () => {
      const { store, add, claim, expireLeases } = await openStoreHarness(open);
      await add("https://a.test/");
      const { task, lease } = await claim();
      expireLeases();
      await store.claim({ leaseMs: minuteMs, exceptHosts: ["a.test"] });
      await store.update(task.id, { attempts: 5 }, { lease });
      expect((await claim()).task).toMatchObject({ id: task.id, attempts: 5 });
    });

    test.each(["queued", "succeeded", "failed", "canceled"] as const)(
      "the lease ends when the task becomes %s",
      async (state) => {
        const { store, clock, add, claim } = await openStoreHarness(open);
        const { id } = await add();
        const { lease } = await claim();
        const runAfter = new Date(clock.now().getTime() + 10 * minuteMs);
        await store.update(id, { state }, { lease, runAfter });
        expect(await store.heartbeat(id, lease, minuteMs)).toBe(false);
        const late = store.update(id, { attempts: 9 }, { lease });
        await expect(late).rejects.toMatchObject(conflict);
        clock.advance(minuteMs + slackMs);
        expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
      },
    );

    test("an update without a lease ignores the lease", async () => {
      const { store, add, claim } = await openStoreHarness(open);
      const { id } = await add();
      const lease = "never given";
      await expect(store.update(id, { attempts: 1 }, { lease })).rejects.toMatchObject(conflict);
      await claim();
      await expect(store.update(id, { attempts: 9 }, { lease })).rejects.toMatchObject(conflict);
      expect(await store.update(id, { state: "canceled" })).toMatchObject({ attempts: 1 });
    });

    test("a deleted task has no lease", async () => {
      const { store, add, claim, expireLeases } = await openStoreHarness(open);
      const { id } = await add();
      const { lease } = await claim();
      await store.delete(id);
      expect(await store.heartbeat(id, lease, minuteMs)).toBe(false);
      expireLeases();
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    });

    test("a task set running without a claim has no lease that could expire", async () => {
      const { store, clock, add } = await openStoreHarness(open);
      const { id } = await add();
      await store.update(id, { state: "running" });
      clock.advance(1000 * minuteMs);
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    });
  });
}

const progress = {
  stage: "downloading",
  downloaded_bytes: 5,
  total_bytes: null,
  speed: null,
  eta: null,
} as const;
