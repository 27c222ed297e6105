import { describe, expect, test } from "vitest";
import { newTask } from "../../../src/feed/task-changes.ts";
import { minuteMs, type OpenStore, openStoreHarness } from "./harness.ts";

export function describeClosing(open: OpenStore): void {
  describe("closes:", () => {
    test("a second close does nothing", async () => {
      const { store } = await openStoreHarness(open);
      await store.close();
      await expect(store.close()).resolves.toBeUndefined();
    });

    test("accepted writes are finished", async () => {
      const { store, clock } = await openStoreHarness(open);
      const task = newTask("https://video.example.com/", {}, clock.now());
      const outcomes = Promise.all([store.create(task), store.close()]);
      expect(await outcomes).toEqual([task, undefined]);
    });

    test("every other method then rejects with unavailable", async () => {
      const { store, clock } = await openStoreHarness(open);
      await store.close();
      const refusal = { name: "ServiceError", code: "unavailable" };
      const task = newTask("https://video.example.com/", {}, clock.now());
      await expect(store.create(task)).rejects.toMatchObject(refusal);
      await expect(store.get(task.id)).rejects.toMatchObject(refusal);
      await expect(store.list({ limit: 1 })).rejects.toMatchObject(refusal);
      await expect(store.update(task.id, { attempts: 1 })).rejects.toMatchObject(refusal);
      await expect(store.delete(task.id)).rejects.toMatchObject(refusal);
      await expect(store.claim({ leaseMs: minuteMs })).rejects.toMatchObject(refusal);
      await expect(store.heartbeat(task.id, "lease", minuteMs)).rejects.toMatchObject(refusal);
      await expect(store.outbox.claim({ endpoint: "*", limit: 1, leaseMs: minuteMs })).rejects.toMatchObject(refusal);
      await expect(store.count()).rejects.toMatchObject(refusal);
      await expect(store.ping()).rejects.toMatchObject(refusal);
    });
  });
}
