import { describe, expect, test } from "vitest";
import { minuteMs, type OpenStore, openStoreHarness, type StoreHarness } from "./harness.ts";

export function describeStalled(open: OpenStore): void {
  describe("counts dead workers:", () => {
    test("a queued task has none", async () => {
      const { add, claim } = await openStoreHarness(open);
      await add();
      expect((await claim()).stalledCount).toBe(0);
    });

    test("each expired lease counts one, and the attempt stays the same", async () => {
      const harness = await openStoreHarness(open);
      await harness.add();
      expect((await harness.claim()).task.attempts).toBe(1);
      for (const stalledCount of [1, 2, 3, 4]) {
        expect(await letDie(harness)).toMatchObject({ stalledCount, task: { attempts: 1 } });
      }
    });

    test("heartbeats and changes without a state keep the number", async () => {
      const harness = await openStoreHarness(open);
      const { id } = await harness.add();
      await harness.claim();
      const { lease } = await letDie(harness);
      await harness.store.heartbeat(id, lease, minuteMs);
      await harness.store.update(id, { error: null }, { lease, madeProgress: false });
      expect((await letDie(harness)).stalledCount).toBe(2);
    });

    test("progress resets the number", async () => {
      const harness = await openStoreHarness(open);
      const { id } = await harness.add();
      await harness.claim();
      await letDie(harness);
      const { lease } = await letDie(harness);
      await harness.store.update(id, { error: null }, { lease, madeProgress: true });
      expect((await letDie(harness)).stalledCount).toBe(1);
    });

    test("a change of state resets the number", async () => {
      const harness = await openStoreHarness(open);
      const { id } = await harness.add();
      await harness.claim();
      const { lease } = await letDie(harness);
      await harness.store.update(id, { state: "queued" }, { lease });
      expect(await harness.claim()).toMatchObject({ stalledCount: 0, task: { attempts: 2 } });
      expect((await letDie(harness)).stalledCount).toBe(1);
    });

    test("a refused change does not reset the number", async () => {
      const harness = await openStoreHarness(open);
      const { id } = await harness.add();
      const { lease } = await harness.claim();
      await letDie(harness);
      const late = harness.store.update(id, { error: null }, { lease, madeProgress: true });
      await expect(late).rejects.toMatchObject({ code: "conflict" });
      expect((await letDie(harness)).stalledCount).toBe(2);
    });
  });
}

function letDie({ expireLeases, claim }: StoreHarness) {
  expireLeases();
  return claim();
}
