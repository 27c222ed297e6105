import { describe, expect, onTestFinished, test } from "vitest";
import type { Task, TaskFile } from "../../../src/model/task.ts";
import { serviceEndpoint } from "../../../src/stores/outbox.ts";
import { StorageFullError } from "../../../src/stores/rules.ts";
import type { StoredFile } from "../../../src/stores/store-types.ts";
import { collectEvents, idsOf, type OpenStore, openStoreHarness, type StoreHarness, times } from "./harness.ts";
import { addKey } from "./turns.ts";

const page = "https://video.example.com/watch";

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
      const message = `task ${id} has no file; its state is succeeded`;
      const reason = { code: "conflict", message };
      expect(refused).toMatchObject([{ reason }, { reason }]);
      await store.delete(id);
      const [, , , removed, deleted] = await take(5);
      expect([removed?.state, deleted?.type]).toEqual(["succeeded", "deleted"]);
      expect(JSON.parse(removed?.json ?? "")).toMatchObject({ id, file: null });
    });

    test("no message to webhooks is left", async () => {
      const harness = await openStoreHarness(open, { webhook: true });
      const { store } = harness;
      const { id } = await addFile(harness, 10);
      const query = { endpoint: serviceEndpoint, limit: 1, leaseMs: 1_000 };
      const [message] = await store.outbox.claim(query);
      await store.outbox.remove(message!);
      await store.update(id, { file: null });
      expect(await store.outbox.count()).toMatchObject({ messages: 0 });
    });
  });

  describe("knows the files of all tasks:", () => {
    test("how many bytes they have together, and which finished first", async () => {
      const harness = await openStoreHarness(open);
      const { store, clock, add } = harness;
      expect(await store.storedFiles({ limit: 9 })).toEqual({ bytes: 0, oldest: [] });
      const started = await Promise.all(times(3, (n) => add(page, {}, n > 0 ? "anna" : undefined)));
      await add();
      for (const { id } of started) await store.update(id, { state: "running" });
      // The last that was created finishes first.
      for (const { id } of started.toReversed()) {
        clock.advance(1_000);
        await store.update(id, { state: "succeeded", file: fileOf(10) });
      }
      const failed = await add();
      await store.update(failed.id, { state: "canceled" });
      await addFile(harness, 0);
      const { bytes, oldest } = await store.storedFiles({ limit: 9 });
      expect([bytes, oldest.map(({ id }) => id)]).toEqual([30, idsOf(started).toReversed()]);
      const { finished_at } = (await store.get(oldest[0]!.id))!;
      expect(oldest[0]).toEqual({
        id: started[2]?.id,
        seq: expect.any(Number),
        bytes: 10,
        finishedAt: finished_at,
      });
    });

    test("in pages, also if they have finished at the same moment", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const tasks = [];
      for (let n = 0; n < 5; n += 1) tasks.push(await addFile(harness, 1));
      const seen: StoredFile[] = [];
      for (let after: StoredFile | undefined; ;) {
        const { bytes, oldest } = await store.storedFiles({ limit: 2, after });
        expect(bytes).toBe(5);
        seen.push(...oldest);
        after = oldest.at(-1);
        if (after === undefined) break;
      }
      expect(seen.map(({ id }) => id)).toEqual(idsOf(tasks));
    });

    test("not those that were removed, nor those of deleted tasks", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const [removed, deleted] = [await addFile(harness, 1), await addFile(harness, 2)];
      const kept = await addFile(harness, 4);
      await store.update(removed.id, { file: null });
      await store.delete(deleted.id);
      expect(await store.storedFiles({ limit: 9 })).toMatchObject({
        bytes: 4,
        oldest: [{ id: kept.id }],
      });
    });
  });

  describe("keeps the files of all tasks within a limit:", () => {
    test("the file that would exceed it is refused, its task unchanged and held", async () => {
      const harness = await openStoreHarness(open);
      const { store, add, claim } = harness;
      const first = await addFile(harness, 60, "anna");
      await add();
      const { task, lease } = await claim();
      const end = () => store.update(task.id, { state: "succeeded", file: fileOf(41) }, { lease, maxStoredBytes: 100 });
      const refusal = end();
      await expect(refusal).rejects.toBeInstanceOf(StorageFullError);
      await expect(refusal).rejects.toThrow("the files of all tasks would have 101 bytes, the limit is 100");
      expect(await store.get(task.id)).toEqual(task);
      expect(await store.heartbeat(task.id, lease, 1_000)).toBe(true);
      await store.update(first.id, { file: null });
      expect(await end()).toMatchObject({ state: "succeeded", file: { size: 41 } });
    });

    test("of 50 files at once exactly as many as fit are kept", async () => {
      const { store, add } = await openStoreHarness(open);
      const tasks = await Promise.all(times(50, (n) => add(page, {}, `owner-${n % 5}`)));
      await Promise.all(tasks.map(({ id }) => store.update(id, { state: "running" })));
      const change = { state: "succeeded", file: fileOf(10) } as const;
      const outcomes = await Promise.allSettled(
        tasks.map(({ id }) => store.update(id, change, { maxStoredBytes: 205 })),
      );
      const refused = outcomes.filter(({ status }) => status === "rejected");
      expect(refused).toMatchObject(times(30, () => ({ reason: { code: "disk_full" } })));
      expect((await store.storedFiles({ limit: 1 })).bytes).toBe(200);
    });

    test("what its owner's key does not allow is refused for that", async () => {
      const harness = await openStoreHarness(open);
      const { store, add } = harness;
      await addKey(harness, "anna", { max_bytes: 5 });
      const { id } = await add(page, {}, "anna");
      await store.update(id, { state: "running" });
      const change = { state: "succeeded", file: fileOf(10) } as const;
      await expect(store.update(id, change, { maxStoredBytes: 5 })).rejects.toMatchObject({
        code: "quota_exceeded",
      });
    });
  });

  const { replaceDocuments } = open;
  // A store in memory has no records of earlier releases.
  if (replaceDocuments === undefined) return;
  test("reads a task of an earlier release, without removed_at, as one that has none", async () => {
    const harness = await openStoreHarness(open);
    const task = await addFile(harness, 10);
    const { removed_at: _, ...earlier } = task;
    const documents = new Map([[task.id, JSON.stringify(earlier)]]);
    const { store, log } = await replaceDocuments(harness.store, documents);
    onTestFinished(() => store.close());
    expect(await store.get(task.id)).toEqual(task);
    expect((await store.list({ limit: 1 })).tasks).toEqual([task]);
    expect(await store.update(task.id, { attempts: 2 })).toMatchObject({ removed_at: null });
    expect(log).toEqual([]);
  });
}

/** Runs a new task to success with a file of this size. */
export async function addFile(
  { add, store }: Pick<StoreHarness, "add" | "store">,
  size: number,
  owner?: string,
): Promise<Task> {
  const { id } = await add(page, {}, owner);
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
