import { describe, expect, test } from "vitest";
import { idempotencyTtlMs, type TaskStore } from "../../../src/stores/store.ts";
import { newTask } from "../../../src/task-changes.ts";
import { idsOf, type OpenStore, startTrial, times, type StoreHarness } from "./harness.ts";

const same = { key: "key", fingerprint: "fingerprint" };

export function describeIdempotency(open: OpenStore): void {
  describe("remembers idempotency keys:", () => {
    test("the second create with a key stores nothing and answers as the first", async () => {
      const trial = await startTrial(open);
      const first = await create(trial, same);
      trial.clock.advance(1000);
      expect(await create(trial, same)).toEqual(first);
      expect(await stored(trial.store)).toEqual([first.id]);
    });

    test("of 200 creates with one key at the same time one stores, and all answer it", async () => {
      const trial = await startTrial(open);
      const answers = await Promise.all(times(200, () => create(trial, same)));
      expect(new Set(idsOf(answers)).size).toBe(1);
      expect(await stored(trial.store)).toEqual([answers[0]?.id]);
    });

    test("the answer stays as it was when the task has changed", async () => {
      const trial = await startTrial(open);
      const first = await create(trial, same);
      await trial.store.update(first.id, { state: "running", attempts: 1 });
      expect(await create(trial, same)).toEqual(first);
    });

    test("the answer stays as it was when the task is deleted, which stays deleted", async () => {
      const trial = await startTrial(open);
      const first = await create(trial, same);
      await trial.store.delete(first.id);
      expect(await create(trial, same)).toEqual(first);
      expect(await stored(trial.store)).toEqual([]);
    });

    test("a key used with another fingerprint is refused, and nothing is stored", async () => {
      const trial = await startTrial(open);
      const first = await create(trial, same);
      const refusal = { name: "ServiceError", code: "idempotency_mismatch" };
      const other = { ...same, fingerprint: "another" };
      await expect(create(trial, other)).rejects.toMatchObject(refusal);
      expect(await create(trial, same)).toEqual(first);
      expect(await stored(trial.store)).toEqual([first.id]);
    });

    test("of two requests with one key at the same time one is refused", async () => {
      const trial = await startTrial(open);
      const outcomes = await Promise.allSettled([
        create(trial, same),
        create(trial, { ...same, fingerprint: "another" }),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
      expect(await stored(trial.store)).toHaveLength(1);
    });

    test("a key is kept for 24 hours from its first use, then it is free", async () => {
      const trial = await startTrial(open);
      const first = await create(trial, same);
      trial.clock.advance(idempotencyTtlMs - 1);
      expect(await create(trial, same)).toEqual(first);
      trial.clock.advance(1);
      const second = await create(trial, { ...same, fingerprint: "another" });
      expect(second.id).not.toBe(first.id);
      trial.clock.advance(idempotencyTtlMs - 1);
      expect(await create(trial, { ...same, fingerprint: "another" })).toEqual(second);
      expect(await stored(trial.store)).toEqual([second.id, first.id]);
    });

    test("a key ends on time also when an older one was used under a clock set back", async () => {
      const trial = await startTrial(open);
      await create(trial, { key: "older", fingerprint: "f" });
      trial.clock.advance(-1000);
      const first = await create(trial, same);
      trial.clock.advance(idempotencyTtlMs);
      expect((await create(trial, same)).id).not.toBe(first.id);
    });

    test("many keys that end together are all free afterwards", async () => {
      const trial = await startTrial(open);
      const keys = times(100, (n) => ({ key: `key ${n}`, fingerprint: "f" }));
      await Promise.all(keys.map((key) => create(trial, key)));
      trial.clock.advance(idempotencyTtlMs);
      await Promise.all(keys.toReversed().map((key) => create(trial, key)));
      expect(await stored(trial.store)).toHaveLength(200);
    });

    test.each(["__proto__", "constructor", "'; --", "k".repeat(255), "K", "k "])(
      "%j is a key of its own",
      async (key) => {
        const trial = await startTrial(open);
        await create(trial, { key: "k", fingerprint: "f" });
        const first = await create(trial, { key, fingerprint: "g" });
        expect(await create(trial, { key, fingerprint: "g" })).toEqual(first);
        expect(await stored(trial.store)).toHaveLength(2);
      },
    );

    test("a create that is refused leaves its key free", async () => {
      const trial = await startTrial(open);
      const taken = await trial.add();
      await expect(trial.store.create(taken, same)).rejects.toMatchObject({ code: "conflict" });
      const created = await create(trial, same);
      expect(await stored(trial.store)).toEqual([created.id, taken.id]);
    });

    test("an idempotency changed after the call counts as it was when called", async () => {
      const trial = await startTrial(open);
      const idempotency = { ...same };
      const creating = create(trial, idempotency);
      idempotency.key = "another";
      expect(await create(trial, same)).toEqual(await creating);
    });
  });
}

function create({ store, clock }: StoreHarness, idempotency: typeof same) {
  return store.create(newTask("https://video.example.com/", {}, clock.now()), idempotency);
}

async function stored(store: TaskStore): Promise<string[]> {
  return idsOf((await store.list({ limit: 200 })).tasks);
}
