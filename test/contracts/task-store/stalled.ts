import { describe, expect, test } from "vitest";
import { minuteMs, type OpenStore, openStoreHarness, type StoreHarness } from "./harness.ts";

export function describeStalled(open: OpenStore): void {
  describe("keeps how many runs in a row have died:", () => {
    test("a queued task has none, and a claim counts none, however many workers die after it", async () => {
      const harness = await openStoreHarness(open);
      await harness.add();
      expect((await harness.claim()).stalledCount).toBe(0);
      for (let deaths = 0; deaths < 12; deaths += 1) {
        expect(await letDie(harness)).toMatchObject({ stalledCount: 0, task: { attempts: 1 } });
      }
    });

    test("claims get the number that the last update has set", async () => {
      const harness = await openStoreHarness(open);
      const { id } = await harness.add();
      let { lease } = await harness.claim();
      for (const stalledCount of [1, 2, 0, 4]) {
        await harness.store.update(id, { error: null }, { lease, stalledCount });
        const next = await letDie(harness);
        expect(next).toMatchObject({ stalledCount, task: { attempts: 1 } });
        ({ lease } = next);
      }
    });

    test("an update may set nothing else, and sets the same again if it is repeated", async () => {
      const harness = await openStoreHarness(open);
      const { id } = await harness.add();
      const { lease } = await harness.claim();
      for (const _ of [1, 2]) await harness.store.update(id, {}, { lease, stalledCount: 1 });
      expect(await letDie(harness)).toMatchObject({ stalledCount: 1 });
    });

    test("heartbeats and changes without a state keep the number", async () => {
      const harness = await openStoreHarness(open);
      const { id } = await harness.add();
      const { lease } = await harness.claim();
      await harness.store.update(id, { error: null }, { lease, stalledCount: 2 });
      await harness.store.heartbeat(id, lease, minuteMs);
      await harness.store.update(id, { error: null }, { lease });
      expect((await letDie(harness)).stalledCount).toBe(2);
    });

    test("a change of state resets the number", async () => {
      const harness = await openStoreHarness(open);
      const { id } = await harness.add();
      const { lease } = await harness.claim();
      await harness.store.update(id, { error: null }, { lease, stalledCount: 2 });
      await harness.store.update(id, { state: "queued" }, { lease });
      expect(await harness.claim()).toMatchObject({ stalledCount: 0, task: { attempts: 2 } });
      expect((await letDie(harness)).stalledCount).toBe(0);
    });

    test("a refused change does not set the number", async () => {
      const harness = await openStoreHarness(open);
      const { id } = await harness.add();
      const { lease } = await harness.claim();
      await harness.store.update(id, { error: null }, { lease, stalledCount: 1 });
      await letDie(harness);
      const late = harness.store.update(id, { error: null }, { lease, stalledCount: 0 });
      await expect(late).rejects.toMatchObject({ code: "conflict" });
      expect((await letDie(harness)).stalledCount).toBe(1);
    });
  });
}

function letDie({ expireLeases, claim }: StoreHarness) {
  expireLeases();
  return claim();
}
