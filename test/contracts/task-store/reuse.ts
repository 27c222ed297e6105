import { describe, expect, test } from "vitest";
import { newTask } from "../../../src/feed/task-changes.ts";
import type { Task, TaskOptions } from "../../../src/model/task.ts";
import type { Idempotency } from "../../../src/stores/store-types.ts";
import { formatOf } from "../../formats.ts";
import { pageInfo } from "../../page-info.ts";
import { fileOf } from "./files.ts";
import { collectEvents, type OpenStore, openStoreHarness, type StoreHarness, times } from "./harness.ts";

const page = "https://video.example.com/watch?v=1";

export function describeReuse(open: OpenStore): void {
  describe("finds what an owner has already:", () => {
    test.each(["queued", "running", "succeeded"] as const)("a task that is %s is the answer", async (state) => {
      const harness = await openStoreHarness(open);
      const task = await harness.add(page);
      if (state !== "queued") await harness.claim();
      if (state === "succeeded") await harness.store.update(task.id, { state, file: fileOf(5) });
      expect(await reuse(harness, page)).toEqual({ task: await harness.store.get(task.id), isNew: false });
      expect((await harness.store.list({ limit: 9 })).tasks).toHaveLength(1);
    });

    test("what has failed, was canceled or has lost its file is not", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const [failed, canceled, removed] = [await harness.add(page), await harness.add(page), await harness.add(page)];
      for (const { id } of [failed, removed]) await store.update(id, { state: "running" });
      await store.update(failed.id, { state: "failed" });
      await store.update(canceled.id, { state: "canceled" });
      await store.update(removed.id, { state: "succeeded", file: fileOf(5) });
      await store.update(removed.id, { file: null });
      const { task, isNew } = await reuse(harness, page);
      expect(isNew).toBe(true);
      expect([failed, canceled, removed].map(({ id }) => id)).not.toContain(task.id);
    });

    test.each<[string, string, TaskOptions, string | undefined, boolean]>([
      ["the same page", page, { max_height: 720 }, "anna", true],
      ["a place in the page", `${page}#t=10`, { max_height: 720 }, "anna", true],
      ["the same, reused before", page, { max_height: 720, if_exists: "reuse" }, "anna", true],
      ["the canonical URL of its page", "https://video.example.com/canonical", { max_height: 720 }, "anna", true],
      ["another route of the page", `${page}#/watch/2`, { max_height: 720 }, "anna", false],
      ["another page", "https://video.example.com/watch?v=2", { max_height: 720 }, "anna", false],
      ["other options", page, { max_height: 480 }, "anna", false],
      ["another owner", page, { max_height: 720 }, "bert", false],
      ["nobody", page, { max_height: 720 }, undefined, false],
    ])("%s", async (_, url, options, owner, isFound) => {
      const harness = await openStoreHarness(open);
      const { id } = await harness.add(page, { max_height: 720 }, "anna");
      await harness.claim();
      const info = pageInfo({ url: page, webpage_url: "https://video.example.com/canonical" });
      await harness.store.update(id, { info });
      expect((await reuse(harness, url, { options, owner })).isNew).toBe(!isFound);
    });

    test.each<[TaskOptions, TaskOptions, boolean]>([
      [{}, { audio_only: false, audio_languages: ["original"], subtitles: false }, true],
      [{ audio_only: false }, { preferred_codecs: [] }, true],
      [{ skip: ["intro"] }, { skip: ["intro"], skip_mode: "cut" }, true],
      [{ subtitles: { languages: ["de"] } }, { subtitles: { languages: ["de"], automatic: false } }, true],
      [{}, { audio_only: true }, false],
      [{}, { preferred_codecs: ["h264"] }, false],
      [{}, { audio_languages: ["original", "de"] }, false],
      [{}, { subtitles: true }, false],
      [{}, { embed: false }, false],
      [{ skip: ["intro"] }, { skip: ["intro"], skip_mode: "chapters" }, false],
      [{ subtitles: { languages: ["de"] } }, { subtitles: { languages: ["de"], automatic: true } }, false],
    ])(
      "an option that is stated as its default is as one that is absent: %j and %j",
      async (known, options, isFound) => {
        const harness = await openStoreHarness(open);
        await harness.add(page, known);
        expect((await reuse(harness, page, { options })).isNew).toBe(!isFound);
      },
    );

    test.each<[string, Task["video"], Task["video"], boolean]>([
      ["what was read of its page", undefined, { extractor: "Films", id: "1" }, true],
      ["what its URL says", { extractor: "Films", id: "1" }, undefined, true],
      ["another id", { extractor: "Films", id: "2" }, { extractor: "Films", id: "2" }, false],
      ["another site", { extractor: "Songs", id: "1" }, { extractor: "Songs", id: "1" }, false],
      ["an id that its page contradicts", { extractor: "Films", id: "1" }, { extractor: "Films", id: "2" }, false],
    ])("the video of another URL, by %s", async (_, video, read, isFound) => {
      const { store, clock } = await openStoreHarness(open);
      const [first, second] = ["https://long.example/watch?v=1", "https://short.example/1"].map((url) =>
        newTask(url, {}, clock.now()),
      );
      const known = await store.create({ ...first!, ...(video && { video }) });
      await store.claim({ leaseMs: 60_000 });
      const info = read && pageInfo({ url: known.url, extractor: read.extractor, video_id: read.id });
      if (info !== undefined) await store.update(known.id, { info });
      await store.update(known.id, { progress: null });
      const wanted = { ...second!, video: { extractor: "Films", id: "1" } };
      const { task, isNew } = await store.reuse(wanted);
      expect([task.id, isNew]).toEqual(isFound ? [known.id, false] : [wanted.id, true]);
      expect(await store.reuse(newTask("https://other.example/1", {}, clock.now()))).toMatchObject({ isNew: true });
      const other = newTask("https://other.example/2", { max_height: 720 }, clock.now(), "anna");
      expect(await store.reuse({ ...other, video: wanted.video })).toMatchObject({ isNew: true });
    });

    test("of several it is the newest; a collection is none", async () => {
      const harness = await openStoreHarness(open);
      await harness.add(page);
      const second = await harness.add(page);
      expect((await reuse(harness, page)).task.id).toBe(second.id);
      await harness.store.update(second.id, { kind: "collection" });
      expect((await reuse(harness, page)).task.id).not.toBe(second.id);
    });

    test("of many for one page it is the newest that waits, runs or has its file", async () => {
      const harness = await openStoreHarness(open);
      const added: string[] = [];
      for (let n = 0; n < 40; n += 1) added.push((await harness.add(page)).id);
      for (const id of added.slice(18)) await harness.store.update(id, { state: "canceled" });
      expect((await reuse(harness, page)).task.id).toBe(added[17]);
      for (const id of added.slice(0, 18)) await harness.store.update(id, { state: "canceled" });
      expect((await reuse(harness, page)).isNew).toBe(true);
    });

    test("of 20 calls at once exactly one stores", async () => {
      const harness = await openStoreHarness(open);
      const events = collectEvents(harness.store);
      const answers = await Promise.all(times(20, () => reuse(harness, page)));
      expect(answers.filter(({ isNew }) => isNew)).toHaveLength(1);
      expect(new Set(answers.map(({ task }) => task.id)).size).toBe(1);
      const other = await harness.add("https://video.example.com/other");
      expect((await events.take(2)).map(({ taskId }) => taskId)).toEqual([answers[0]?.task.id, other.id]);
    });

    test("of many calls at once, each with a key, one per video stores, for each owner, and all keep their answers", async () => {
      const harness = await openStoreHarness(open);
      const call = (n: number) =>
        reuse(harness, `${page}${n % 40}`, {
          owner: n % 80 < 40 ? "anna" : undefined,
          idempotency: { key: `key ${n}`, fingerprint: "f" },
        });
      const answers = await Promise.all(times(160, call));
      expect(answers.filter(({ isNew }) => isNew).map(({ task }) => [task.owner, task.url])).toEqual(
        times(80, (n) => [n < 40 ? "anna" : undefined, `${page}${n % 40}`]),
      );
      expect(new Set(answers.map(({ task }) => task.id)).size).toBe(80);
      expect(await Promise.all(times(160, call))).toEqual(answers);
      expect((await harness.store.count()).byState.queued).toBe(80);
    });

    test("of many calls at once as many store as the queue has room for, and the others are refused", async () => {
      const harness = await openStoreHarness(open, { maxQueued: 7 });
      const existing = await harness.add(page);
      const answers = await Promise.allSettled(times(30, (n) => reuse(harness, n % 10 === 9 ? page : `${page}${n}`)));
      const codes = answers.map((each) =>
        each.status === "rejected" ? (each.reason as { code: string }).code : each.value.isNew,
      );
      expect(codes.filter((code) => code === true)).toHaveLength(6);
      expect(codes.filter((code) => code === false)).toHaveLength(3);
      expect(codes.filter((code) => code === "unavailable")).toHaveLength(21);
      expect(answers[9]).toMatchObject({ value: { task: { id: existing.id }, isNew: false } });
    });

    test("a used key gets the same answer, whatever has become of the task", async () => {
      const harness = await openStoreHarness(open);
      const existing = await harness.add(page);
      const [one, two] = ["one", "two"].map((key) => ({ key, fingerprint: "f" }));
      const found = await reuse(harness, page, { idempotency: one });
      expect(found).toEqual({ task: existing, isNew: false });
      await harness.store.update(existing.id, { state: "canceled" });
      expect(await reuse(harness, page, { idempotency: one })).toEqual(found);
      const made = await reuse(harness, page, { idempotency: two });
      expect(made.isNew).toBe(true);
      expect(await reuse(harness, page, { idempotency: two })).toEqual(made);
      const other = reuse(harness, page, { idempotency: { key: "one", fingerprint: "g" } });
      await expect(other).rejects.toMatchObject({ code: "idempotency_mismatch" });
    });

    test("of a long record the answer has at most 16,000 bytes, also under a key, and the task keeps all", async () => {
      const harness = await openStoreHarness(open);
      const { id } = await harness.add(page);
      const formats = times(300, (n) => formatOf(`f${n}`));
      const whole = await harness.store.update(id, { info: pageInfo({ url: page, title: "A film", formats }) });
      const idempotency = { key: "key", fingerprint: "f" };
      const found = await reuse(harness, page, { idempotency });
      expect(Buffer.byteLength(JSON.stringify(found.task))).toBeLessThanOrEqual(16_000);
      expect(found.task.info).toMatchObject({ title: "A film", truncated: { formats: expect.any(Number) } });
      expect(await reuse(harness, page)).toEqual(found);
      expect(await harness.store.get(id)).toEqual(whole);
      await harness.store.delete(id);
      expect(await reuse(harness, page, { idempotency })).toEqual(found);
    });

    test("of a record whose texts alone are longer the answer has no information about the page", async () => {
      const harness = await openStoreHarness(open);
      const task = await harness.add(page);
      const text = "\u0001".repeat(1_000);
      const info = pageInfo({ url: page, title: text, site_name: text, uploader: text });
      const { updated_at } = await harness.store.update(task.id, { info });
      expect(await reuse(harness, page)).toEqual({ task: { ...task, updated_at }, isNew: false });
    });

    test("a full queue refuses a new one, and still finds one", async () => {
      const harness = await openStoreHarness(open, { maxQueued: 1 });
      const { id } = await harness.add(page);
      expect((await reuse(harness, page)).task.id).toBe(id);
      await expect(reuse(harness, `${page}2`)).rejects.toMatchObject({ code: "unavailable" });
    });
  });
}

function reuse(
  { store, clock }: StoreHarness,
  url: string,
  given: { options?: TaskOptions; owner?: string | undefined; idempotency?: Idempotency | undefined } = {},
): Promise<{ task: Task; isNew: boolean }> {
  return store.reuse(newTask(url, given.options ?? {}, clock.now(), given.owner), given.idempotency);
}
