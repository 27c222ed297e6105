import { describe, expect, onTestFinished, test } from "vitest";
import type { Task, TaskFile } from "../../../src/task.ts";
import { collectEvents, type OpenStore, openStoreHarness, type StoreHarness } from "./harness.ts";

export function describeStoredFiles(open: OpenStore): void {
  describe("lets the file of a task be removed:", () => {
    test("the task stays succeeded, without a file, and has the time", async () => {
      const harness = await openStoreHarness(open);
      const { store, clock } = harness;
      const before = await addFile(harness, 10);
      expect(before).toMatchObject({ removed_at: null, file: { size: 10 } });
      clock.advance(5_000);
      const now = clock.now().toISOString();
      const task = await store.update(before.id, { file: null }, { hasFile: true });
      expect(task).toEqual({ ...before, file: null, removed_at: now, updated_at: now });
      expect(await store.get(before.id)).toEqual(task);
    });

    test("once: whoever needs a file is refused with conflict, and nothing is published", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { take } = collectEvents(store);
      const { id } = await addFile(harness, 10);
      const removals = [1, 2, 3].map(() => store.update(id, { file: null }, { hasFile: true }));
      const outcomes = await Promise.allSettled(removals);
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      const refused = outcomes.filter(({ status }) => status === "rejected");
      const reason = { code: "conflict", message: `task ${id} is succeeded; it has no file` };
      expect(refused).toMatchObject([{ reason }, { reason }]);
      await store.delete(id);
      const [, , , removed, deleted] = await take(5);
      expect([removed?.state, deleted?.type]).toEqual(["succeeded", "deleted"]);
      expect(JSON.parse(removed?.json ?? "")).toMatchObject({ id, file: null });
    });

    test("no message to webhooks is left", async () => {
      const harness = await openStoreHarness(open, 10_000, true);
      const { store } = harness;
      const { id } = await addFile(harness, 10);
      const message = await store.outbox.claim({ leaseMs: 1_000 });
      await store.outbox.remove(message!);
      await store.update(id, { file: null });
      expect(await store.outbox.claim({ leaseMs: 1_000 })).toBeUndefined();
    });
  });

  describe.runIf(open.replaceDocuments !== undefined)("reads what earlier releases wrote:", () => {
    test("a task without removed_at has none", async () => {
      const harness = await openStoreHarness(open);
      const task = await addFile(harness, 10);
      const { removed_at: _, ...earlier } = task;
      const documents = new Map([[task.id, JSON.stringify(earlier)]]);
      const { store, log } = await open.replaceDocuments!(harness.store, documents);
      onTestFinished(() => store.close());
      expect(await store.get(task.id)).toEqual(task);
      expect((await store.list({ limit: 1 })).tasks).toEqual([task]);
      expect(await store.update(task.id, { attempts: 2 })).toMatchObject({ removed_at: null });
      expect(log).toEqual([]);
    });
  });
}

/** Runs a new task to success with a file of this size. */
export async function addFile(
  { add, store }: Pick<StoreHarness, "add" | "store">,
  size: number,
  owner?: string,
): Promise<Task> {
  const { id } = await add("https://video.example.com/watch", {}, owner);
  await store.update(id, { state: "running" });
  return store.update(id, { state: "succeeded", file: fileOf(size) });
}

export function fileOf(size: number): TaskFile {
  return {
    name: "film.mp4",
    mime_type: "video/mp4",
    size,
    sha256: "0",
    duration: 1,
    width: 2,
    height: 2,
    url: "/tasks/1/file",
  };
}
