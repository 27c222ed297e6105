import { describe, expect, onTestFinished, test } from "vitest";
import type { PageInfo } from "../../../src/model/page-info.ts";
import type { Task } from "../../../src/model/task.ts";
import type { TaskStore } from "../../../src/stores/store.ts";
import { formatOf } from "../../formats.ts";
import { idsOf, type OpenStore, openStoreHarness, type StoreHarness, times } from "./harness.ts";
import { samplePageInfo } from "./page-info.ts";
import { addKey } from "./turns.ts";

const page = "https://video.example.com/watch";

export function describeSizes(open: OpenStore): void {
  describe("bounds the size of records and pages:", () => {
    test("a record is thinned to 256,000 bytes, and says what was left out", async () => {
      const { store, add } = await openStoreHarness(open);
      const { id } = await add(page, { format_id: "f1999" });
      const changed = await store.update(id, { info: infoOf(2_000) });
      expect(sizeOf(changed)).toBeLessThanOrEqual(256_000);
      const { formats = [], truncated } = changed.info ?? {};
      expect(truncated).toEqual({ formats: 2_000 - formats.length });
      expect([formats[0]?.format_id, formats.at(-1)?.format_id]).toEqual(["f0", "f1999"]);
      expect(await store.get(id)).toEqual(changed);
    });

    test("what is published of it is thinned too", async () => {
      const { store, add } = await openStoreHarness(open);
      const { id } = await add();
      const published = Promise.withResolvers<string>();
      onTestFinished(store.events.subscribe(({ json }) => json.includes("truncated") && published.resolve(json)));
      const changed = await store.update(id, { info: infoOf(2_000) });
      expect(JSON.parse(await published.promise)).toEqual(changed);
    });

    test("a page ends before 1,000,000 bytes, and its next has the rest", async () => {
      const harness = await openStoreHarness(open);
      const created = await Promise.all(times(11, () => addLong(harness)));
      const { pages, tasks } = await walk(harness.store);
      expect(pages.length).toBeGreaterThan(2);
      for (const bytes of pages) expect(bytes).toBeLessThanOrEqual(1_000_000);
      expect(idsOf(tasks).toSorted()).toEqual(idsOf(created).toSorted());
    });

    test("long records are listed as they are, each in its place", async () => {
      const harness = await openStoreHarness(open);
      const created = [await addLong(harness), await addLong(harness), await harness.add(), await harness.add()];
      expect((await harness.store.list({ limit: 4 })).tasks).toEqual(created.toReversed());
    });

    test("short records fill a page up to the limit", async () => {
      const { store, add } = await openStoreHarness(open);
      await Promise.all(times(201, () => add()));
      expect((await store.list({ limit: 200 })).tasks).toHaveLength(200);
    });
  });

  describe("counts records in max_bytes, but for 250,000 bytes of a key:", () => {
    test("a run that learns more than is left is refused, with nothing stored; then no more tasks are accepted", async () => {
      const harness = await openStoreHarness(open);
      await addKey(harness, "anna", { max_bytes: 250_000 });
      const { store, add } = harness;
      for (let n = 0; n < 2; n += 1) await addLong(harness, "anna");
      await add(page, {}, "anna");
      const { task, lease } = await harness.claim();
      const info = infoOf(2_000);
      await expect(store.update(task.id, { info }, { lease })).rejects.toMatchObject({ code: "quota_exceeded" });
      expect((await store.get(task.id))?.info).toBeNull();
      const small = { ...info, formats: info.formats.slice(0, 40) };
      expect(await store.update(task.id, { info: small }, { lease })).toMatchObject({ state: "running" });
      expect(await store.update(task.id, { state: "failed" }, { lease })).toMatchObject({ state: "failed" });
    });

    test("as many bytes as a record takes are free again once its task is deleted, and others are not affected", async () => {
      const harness = await openStoreHarness(open);
      await addKey(harness, "anna", { max_bytes: 200_000 });
      await addKey(harness, "bert", { max_bytes: 200_000 });
      const { store, add } = harness;
      const addLongTo = async () => store.update((await add(page, {}, "anna")).id, { info: infoOf(2_000) });
      const [long] = [await addLongTo(), await addLongTo()];
      await expect(add(page, {}, "anna")).rejects.toMatchObject({ code: "quota_exceeded", retryable: false });
      await add(page, {}, "bert");
      await add();
      await store.delete(long.id);
      await add(page, {}, "anna");
    });

    test("of tasks that have ended the whole records count, of others what is over 16,000 bytes", async () => {
      const harness = await openStoreHarness(open);
      await addKey(harness, "anna", { max_bytes: 10_000 });
      const { store, add } = harness;
      const tasks = await Promise.all(times(60, () => add(page, {}, "anna")));
      for (const { id } of tasks) await store.update(id, { info: infoOf(30) });
      await add(page, {}, "anna");
      let counted = 0;
      for (const { id } of tasks) {
        if (counted >= 260_000) break;
        await add(page, {}, "anna");
        const canceled = await store.update(id, { state: "canceled" });
        expect(sizeOf(canceled)).toBeLessThan(16_000);
        counted += sizeOf(canceled);
      }
      await expect(add(page, {}, "anna")).rejects.toThrow("the files and records of this key need");
      for (const { id } of tasks.slice(0, 2)) await store.delete(id);
      await add(page, {}, "anna");
    });

    test("short records of few tasks take none", async () => {
      const harness = await openStoreHarness(open);
      await addKey(harness, "anna", { max_bytes: 1_000 });
      for (const task of await Promise.all(times(20, () => harness.add(page, {}, "anna")))) {
        await harness.store.update(task.id, { info: samplePageInfo() });
      }
      await harness.add(page, {}, "anna");
    });
  });

  const { replaceDocuments } = open;
  if (replaceDocuments === undefined) return;

  describe("reads long records of earlier releases:", () => {
    test("thinned, each alone in its page", async () => {
      const harness = await openStoreHarness(open);
      const created = await Promise.all(times(3, () => harness.add()));
      const [, middle] = created;
      const long = JSON.stringify({ ...middle, info: infoOf(4_000) });
      const replaced = await replaceDocuments(harness.store, new Map([[middle?.id ?? "", long]]));
      onTestFinished(() => replaced.store.close());
      const { pages, tasks } = await walk(replaced.store);
      expect(pages).toHaveLength(3);
      expect(Math.max(...pages)).toBeLessThanOrEqual(256_000);
      expect(idsOf(tasks)).toEqual(idsOf(created).toReversed());
      expect(sizeOf(await replaced.store.get(middle?.id ?? ""))).toBeLessThanOrEqual(256_000);
    });
  });
}

/** Stores a task with a record of 200 to 256 kB, and claims it. */
async function addLong({ store, add, claim }: StoreHarness, owner?: string): Promise<Task> {
  await add(page, {}, owner);
  const { task, lease } = await claim();
  return store.update(task.id, { info: infoOf(2_000) }, { lease });
}

function infoOf(formats: number): PageInfo {
  return { ...samplePageInfo(), formats: times(formats, (n) => formatOf(`f${n}`, { url: longUrl })) };
}

const longUrl = `https://video.example.com/${"ü".repeat(100)}`;

/** Returns the bytes of each page, and all tasks. */
async function walk(store: TaskStore): Promise<{ pages: number[]; tasks: Task[] }> {
  const [pages, tasks]: [number[], Task[]] = [[], []];
  let before: number | undefined;
  do {
    const found = await store.list({ limit: 200, before });
    pages.push(found.tasks.reduce((sum, task) => sum + sizeOf(task), 0));
    tasks.push(...found.tasks);
    before = found.next;
  } while (before !== undefined);
  return { pages, tasks };
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
