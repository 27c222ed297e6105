import { describe, expect, test } from "vitest";
import type { TaskStore } from "../../../src/stores/store.ts";
import { idempotencyTtlMs } from "../../../src/stores/store-types.ts";
import type { TaskOptions } from "../../../src/model/task.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { idsOf, type OpenStore, openStoreHarness, times, type StoreHarness } from "./harness.ts";

const options: TaskOptions = { entries: ["https://video.example.com/1"], if_exists: "reuse" };
const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const tracestate = "vendor=1";
const same = { key: "key", fingerprint: "fingerprint" };

export function describeIdempotency(open: OpenStore): void {
  describe("keeps idempotency keys:", () => {
    test("the second create with a key stores nothing and returns the first task", async () => {
      const harness = await openStoreHarness(open);
      const first = await create(harness, same);
      harness.clock.advance(1000);
      expect(await create(harness, same)).toEqual(first);
      expect(await stored(harness.store)).toEqual([first.id]);
    });

    test("of 200 concurrent creates with one key one stores, and all return its task", async () => {
      const harness = await openStoreHarness(open);
      const created = await Promise.all(times(200, () => create(harness, same)));
      expect(new Set(idsOf(created)).size).toBe(1);
      expect(await stored(harness.store)).toEqual([created[0]?.id]);
    });

    test("the key's task stays as it was when the task changes", async () => {
      const harness = await openStoreHarness(open);
      const first = await create(harness, same);
      await harness.store.update(first.id, { state: "running", attempts: 1 });
      expect(await create(harness, same)).toEqual(first);
    });

    test("the key's task stays as it was when the task is deleted, and nothing is stored", async () => {
      const harness = await openStoreHarness(open);
      const first = await create(harness, same);
      await harness.store.delete(first.id);
      expect(await create(harness, same)).toEqual(first);
      expect(await stored(harness.store)).toEqual([]);
    });

    test("a key used with another fingerprint is refused, and nothing is stored", async () => {
      const harness = await openStoreHarness(open);
      const first = await create(harness, same);
      const refusal = { name: "ServiceError", code: "idempotency_mismatch" };
      const other = { ...same, fingerprint: "another" };
      await expect(create(harness, other)).rejects.toMatchObject(refusal);
      expect(await create(harness, same)).toEqual(first);
      expect(await stored(harness.store)).toEqual([first.id]);
    });

    test("of two concurrent requests with one key one is refused", async () => {
      const harness = await openStoreHarness(open);
      const outcomes = await Promise.allSettled([
        create(harness, same),
        create(harness, { ...same, fingerprint: "another" }),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
      expect(await stored(harness.store)).toHaveLength(1);
    });

    test("a key is kept for 24 hours from its first use, then it is free", async () => {
      const harness = await openStoreHarness(open);
      const first = await create(harness, same);
      harness.clock.advance(idempotencyTtlMs - 1);
      expect(await create(harness, same)).toEqual(first);
      harness.clock.advance(1);
      const second = await create(harness, { ...same, fingerprint: "another" });
      expect(second.id).not.toBe(first.id);
      harness.clock.advance(idempotencyTtlMs - 1);
      expect(await create(harness, { ...same, fingerprint: "another" })).toEqual(second);
      expect(await stored(harness.store)).toEqual([second.id, first.id]);
    });

    test("a key expires on time also if the clock was set back", async () => {
      const harness = await openStoreHarness(open);
      await create(harness, { key: "older", fingerprint: "f" });
      harness.clock.advance(-1000);
      const first = await create(harness, same);
      harness.clock.advance(idempotencyTtlMs);
      expect((await create(harness, same)).id).not.toBe(first.id);
    });

    test("many keys that expire together are all free afterwards", async () => {
      const harness = await openStoreHarness(open);
      const keys = times(100, (n) => ({ key: `key ${n}`, fingerprint: "f" }));
      await Promise.all(keys.map((key) => create(harness, key)));
      harness.clock.advance(idempotencyTtlMs);
      await Promise.all(keys.toReversed().map((key) => create(harness, key)));
      expect(await stored(harness.store)).toHaveLength(200);
    });

    test.each(["__proto__", "constructor", "'; --", "k".repeat(255), "K", "k "])(
      "%j is a key of its own",
      async (key) => {
        const harness = await openStoreHarness(open);
        await create(harness, { key: "k", fingerprint: "f" });
        const first = await create(harness, { key, fingerprint: "g" });
        expect(await create(harness, { key, fingerprint: "g" })).toEqual(first);
        expect(await stored(harness.store)).toHaveLength(2);
      },
    );

    test("a refused create leaves its key free", async () => {
      const harness = await openStoreHarness(open);
      const taken = await harness.add();
      await expect(harness.store.create(taken, same)).rejects.toMatchObject({ code: "conflict" });
      const created = await create(harness, same);
      expect(await stored(harness.store)).toEqual([created.id, taken.id]);
    });

    test("an idempotency changed after the call is used as it was", async () => {
      const harness = await openStoreHarness(open);
      const idempotency = { ...same };
      const creating = create(harness, idempotency);
      idempotency.key = "another";
      expect(await create(harness, same)).toEqual(await creating);
    });

    test("an owner whose kept responses reach the limit gets no more in 24 hours, others and known keys do", async () => {
      const harness = await openStoreHarness(open, { maxKeptBytes: 2_000 });
      const { store, clock } = harness;
      const page = "https://video.example.com/";
      const repeat = (key: string, owner?: string) =>
        store.reuse(newTask(page, {}, clock.now(), owner), { key, fingerprint: "f" });
      const { task: first } = await repeat("k0", "anna");
      await Promise.allSettled(times(8, (n) => repeat(`more ${n}`, "anna")));
      const refusal = { code: "quota_exceeded", retryAfterS: idempotencyTtlMs / 1_000 };
      await expect(repeat("one more", "anna")).rejects.toMatchObject(refusal);
      expect((await repeat("k0", "anna")).task).toEqual(first);
      await repeat("k0", "bert");
      await Promise.all(times(8, (n) => repeat(`more ${n}`)));
      await store.create(newTask(page, {}, clock.now(), "anna"));
      clock.advance(idempotencyTtlMs);
      await repeat("one more", "anna");
    });
  });
}

function create({ store, clock }: StoreHarness, idempotency: typeof same) {
  return store.create(
    newTask("https://video.example.com/", options, clock.now(), undefined, { traceparent, tracestate }),
    idempotency,
  );
}

async function stored(store: TaskStore): Promise<string[]> {
  return idsOf((await store.list({ limit: 200 })).tasks);
}
