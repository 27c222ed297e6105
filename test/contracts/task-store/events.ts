import { describe, expect, test } from "vitest";
import { newTask } from "../../../src/feed/task-changes.ts";
import type { TaskEvent } from "../../../src/feed/task-events.ts";
import type { Task } from "../../../src/model/task.ts";
import { samplePageInfo } from "./page-info.ts";
import { collectEvents, minuteMs, type OpenStore, openStoreHarness, times } from "./harness.ts";

export function describeEvents(open: OpenStore): void {
  describe("publishes events:", () => {
    test("each change once, in order, as its caller got it, `info` only if it has changed", async () => {
      const { store, add, claim } = await openStoreHarness(open);
      const { take } = collectEvents(store);
      const created = await add();
      const { id } = created;
      const { task: claimed } = await claim();
      const resolved = await store.update(id, { info: samplePageInfo() });
      const changed = await store.update(id, { attempts: 7 });
      const canceled = await store.update(id, { state: "canceled" });
      await store.delete(id);
      const events = await take(6);
      expect(created.info).toBeNull();
      expect([resolved.info, changed.info, canceled.info]).toEqual(times(3, samplePageInfo));
      expect(events.map(({ json }) => JSON.parse(json))).toEqual([
        created,
        withoutInfo(claimed),
        resolved,
        withoutInfo(changed),
        withoutInfo(canceled),
        { id },
      ]);
      expect(events).toMatchObject([
        { type: "task", taskId: id, state: "queued" },
        ...times(3, () => ({ type: "task", taskId: id, state: "running" })),
        { type: "task", taskId: id, state: "canceled" },
        { type: "deleted", taskId: id, state: undefined },
      ]);
    });

    test("whether a task has failed with an error that may pass", async () => {
      const { store, add, claim } = await openStoreHarness(open);
      const { take } = collectEvents(store);
      for (const retryable of [true, false]) {
        const { id } = await add();
        await claim();
        await store.update(id, {
          state: "failed",
          error: { code: "upstream_timeout", message: "it took long", retryable },
        });
      }
      const events = await take(6);
      expect(events.map(({ isRetryable }) => isRetryable)).toEqual([false, false, true, false, false, false]);
    });

    test("the new `info` of a task that runs again", async () => {
      const { store, add, claim } = await openStoreHarness(open);
      const { take } = collectEvents(store);
      const { id } = await add();
      await claim();
      await store.update(id, { info: samplePageInfo() });
      await store.update(id, { state: "queued" });
      await claim();
      const again = { ...samplePageInfo(), title: "Another title" };
      await store.update(id, { info: again });
      await store.update(id, { state: "succeeded" });
      const infos = (await take(7)).map(({ json }) => JSON.parse(json).info);
      const none = undefined;
      expect(infos).toEqual([null, none, samplePageInfo(), none, none, again, none]);
      expect((await store.get(id))?.info).toEqual(again);
    });

    test("that were missed can be read by id", async () => {
      const { store, add } = await openStoreHarness(open);
      const start = store.events.lastId;
      const { take } = collectEvents(store);
      const { id } = await add();
      await store.delete(id);
      const events = await take(2);
      expect(store.events.since(start)).toEqual(events);
      expect(store.events.since(store.events.lastId)).toEqual([]);
    });

    test("the state is the task's own, whatever its URL and its page have in them", async () => {
      const { store, clock } = await openStoreHarness(open);
      const { take } = collectEvents(store);
      const url = 'https://video.example.com/?"state":"failed"&\\"state\\":\\"failed\\"';
      await store.create(newTask(url, { format_id: '"state":"failed"' }, clock.now()));
      expect(await take(1)).toMatchObject([{ state: "queued" }]);
    });

    test("none for what was refused, only read, or returned for an idempotency key", async () => {
      const { store, clock } = await openStoreHarness(open);
      const { take } = collectEvents(store);
      const create = () => {
        const task = newTask("https://video.example.com/", {}, clock.now());
        return store.create(task, { key: "k", fingerprint: "f" });
      };
      const { id } = await create();
      expect((await create()).id).toBe(id);
      await expect(store.update(id, { state: "succeeded" })).rejects.toThrow("is queued and cannot succeed");
      await expect(store.delete("nothing")).rejects.toThrow("nothing");
      await store.get(id);
      await store.list({ limit: 1 });
      await store.heartbeat(id, "none", minuteMs);
      const exceptHosts = ["video.example.com"];
      expect(await store.claim({ leaseMs: minuteMs, exceptHosts })).toBeUndefined();
      await store.delete(id);
      expect(statesOf(await take(2))).toEqual(["queued", "deleted"]);
    });

    test("the changes of one task in their order, however they overlap", async () => {
      const { store, add } = await openStoreHarness(open);
      const { take } = collectEvents(store);
      const { id } = await add();
      const updates = times(20, (attempts) => store.update(id, { attempts }));
      await Promise.all([...updates, store.delete(id)]);
      const events = await take(22);
      const changes = events.slice(1).map(({ json }) => JSON.parse(json));
      expect(changes).toMatchObject([...times(20, (attempts) => ({ attempts })), { id }]);
    });

    test.each(["canceled", "deleted"] as const)("that a task was claimed before that it was %s", async (end) => {
      const { store, add } = await openStoreHarness(open);
      const { take } = collectEvents(store);
      const { id } = await add();
      const claim = store.claim({ leaseMs: minuteMs });
      const ended = end === "deleted" ? store.delete(id) : store.update(id, { state: end });
      const [claimed] = await Promise.all([claim, ended]);
      const states = claimed === undefined ? ["queued", end] : ["queued", "running", end];
      expect(statesOf(await take(states.length))).toEqual(states);
    });
  });
}

function statesOf(events: readonly TaskEvent[]): string[] {
  return events.map(({ type, state }) => state ?? type);
}

function withoutInfo(task: Task) {
  return { ...task, info: undefined };
}
