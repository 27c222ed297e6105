import { describe, expect, test } from "vitest";
import type { State, Task } from "../../../src/model/task.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { samplePageInfo } from "./page-info.ts";
import { minuteMs, type OpenStore, openStoreHarness } from "./harness.ts";

export function describeCopies(open: OpenStore): void {
  describe("goes by value:", () => {
    test("a task changed after create was called is stored as it was when called", async () => {
      const { store, clock } = await openStoreHarness(open);
      const task = newTask("https://video.example.com/1", { max_height: 720 }, clock.now());
      const before = structuredClone(task);
      const created = store.create(task);
      mutate(task);
      expect(await created).toEqual(before);
      mutate(task);
      expect(await store.get(before.id)).toEqual(before);
    });

    test("changing what a playlist says of a stored task changes nothing that create returned", async () => {
      const { store, clock } = await openStoreHarness(open);
      const chapters = [{ start_time: 0, end_time: 5, title: "first" }];
      const collection = { id: "c", index: 1, title: null, entry: { chapters } };
      const task = { ...newTask("https://video.example.com/1", {}, clock.now()), collection };
      const before = structuredClone(task);
      const created = await store.create(task);
      chapters[0]!.title = "mutated";
      expect(created).toEqual(before);
    });

    test("a change changed after update was called is applied as it was when called", async () => {
      const { store, add } = await openStoreHarness(open);
      const { id } = await add();
      const info = samplePageInfo();
      const change = { info, attempts: 1 };
      const updated = store.update(id, change);
      info.tags.push("later");
      change.attempts = 99;
      expect(await updated).toMatchObject({ attempts: 1, info: samplePageInfo() });
      info.tags.push("later still");
      expect(await store.get(id)).toMatchObject({ attempts: 1, info: samplePageInfo() });
    });

    test("dates and hosts changed after the call are used as they were", async () => {
      const { store, clock, add, claim } = await openStoreHarness(open);
      const { id } = await add("https://a.example.com/1");
      await claim();
      const runAfter = new Date(clock.now().getTime() + minuteMs);
      const requeued = store.update(id, { state: "queued" }, { runAfter });
      runAfter.setTime(0);
      await requeued;
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
      clock.advance(minuteMs);
      const exceptHosts = ["a.example.com"];
      const claimed = store.claim({ leaseMs: minuteMs, exceptHosts });
      exceptHosts.length = 0;
      expect(await claimed).toBeUndefined();
    });

    test("expected states changed after the call are used as they were", async () => {
      const { store, add } = await openStoreHarness(open);
      const { id } = await add();
      const from: State[] = ["failed"];
      const refused = store.update(id, { attempts: 1 }, { from });
      from.push("queued");
      await expect(refused).rejects.toMatchObject({ code: "conflict" });
    });

    test("changing a returned task changes nothing that is stored", async () => {
      const { store, add, claim } = await openStoreHarness(open);
      const created = await add("https://video.example.com/1", { max_height: 720 });
      const { id } = created;
      mutate(created);
      const claimed = await claim();
      expect(claimed.task).toMatchObject({ id, url: "https://video.example.com/1" });
      const running = structuredClone(claimed.task);
      mutate(claimed.task);
      expect(await store.get(id)).toEqual(running);
      const updated = await store.update(id, { info: samplePageInfo() });
      const stored = structuredClone(updated);
      mutate(updated);
      const got = await store.get(id);
      expect(got).toEqual(stored);
      mutate(got);
      const listed = await store.list({ limit: 1 });
      expect(listed.tasks).toEqual([stored]);
      mutate(listed.tasks[0]);
      expect(await store.delete(id)).toEqual(stored);
    });

    test("changing a returned task does not change the one kept for a key", async () => {
      const { store, clock } = await openStoreHarness(open);
      const idempotency = { key: "k", fingerprint: "f" };
      const task = newTask("https://video.example.com/1", { max_height: 720 }, clock.now());
      const before = structuredClone(task);
      mutate(await store.create(task, idempotency));
      mutate(await store.create(task, idempotency));
      expect(await store.create(task, idempotency)).toEqual(before);
    });

    test("a key named __proto__ is data like any other", async () => {
      const { store, add } = await openStoreHarness(open);
      const { id } = await add();
      const info = samplePageInfo();
      info.sources = JSON.parse('{"__proto__": "og", "title": "html"}');
      await store.update(id, { info });
      const sources = (await store.get(id))?.info?.sources ?? {};
      expect(Object.entries(sources)).toEqual([
        ["__proto__", "og"],
        ["title", "html"],
      ]);
    });
  });
}

/** Mutates a task at every depth. */
function mutate(task: Task | undefined): void {
  if (task === undefined) throw new Error("there is no task to change");
  task.url = "https://mutated.example.com/";
  task.options.max_height = 1;
  task.info?.tags.push("mutated");
  if (task.info) task.info.subtitles["xx"] = [];
}
