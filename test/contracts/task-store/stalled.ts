import { describe, expect, test } from "vitest";
import { minuteMs, type OpenStore, startTrial, type StoreHarness } from "./harness.ts";

export function describeDeaths(open: OpenStore): void {
  describe("counts the deaths of workers:", () => {
    test("a task that was queued has none", async () => {
      const { add, claim } = await startTrial(open);
      await add();
      expect((await claim()).stalledCount).toBe(0);
    });

    test("each lease that runs out is one, and the attempt stays the same", async () => {
      const trial = await startTrial(open);
      await trial.add();
      expect((await trial.claim()).task.attempts).toBe(1);
      for (const stalledCount of [1, 2, 3, 4]) {
        expect(await letDie(trial)).toMatchObject({ stalledCount, task: { attempts: 1 } });
      }
    });

    test("heartbeats and changes without a move leave the number as it is", async () => {
      const trial = await startTrial(open);
      const { id } = await trial.add();
      await trial.claim();
      const { lease } = await letDie(trial);
      await trial.store.heartbeat(id, lease, minuteMs);
      await trial.store.update(id, { error: null }, { lease, madeProgress: false });
      expect((await letDie(trial)).stalledCount).toBe(2);
    });

    test("a run that got further sets them back to none", async () => {
      const trial = await startTrial(open);
      const { id } = await trial.add();
      await trial.claim();
      await letDie(trial);
      const { lease } = await letDie(trial);
      await trial.store.update(id, { error: null }, { lease, madeProgress: true });
      expect((await letDie(trial)).stalledCount).toBe(1);
    });

    test("an orderly move sets them back to none", async () => {
      const trial = await startTrial(open);
      const { id } = await trial.add();
      await trial.claim();
      const { lease } = await letDie(trial);
      await trial.store.update(id, { state: "queued" }, { lease });
      expect(await trial.claim()).toMatchObject({ stalledCount: 0, task: { attempts: 2 } });
      expect((await letDie(trial)).stalledCount).toBe(1);
    });

    test("a change that is refused does not count as getting further", async () => {
      const trial = await startTrial(open);
      const { id } = await trial.add();
      const { lease } = await trial.claim();
      await letDie(trial);
      const late = trial.store.update(id, { error: null }, { lease, madeProgress: true });
      await expect(late).rejects.toMatchObject({ code: "conflict" });
      expect((await letDie(trial)).stalledCount).toBe(2);
    });
  });
}

function letDie({ lapse, claim }: StoreHarness) {
  lapse();
  return claim();
}
