import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { publishChanges } from "../src/stores/publish-changes.ts";
import { createMemoryStore } from "../src/stores/memory.ts";
import { openSqliteStore } from "../src/stores/sqlite.ts";
import { createTaskEvents, type TaskEvent, type TaskEvents } from "../src/task-events.ts";
import type { Task } from "../src/task.ts";
import { newTask } from "../src/task-changes.ts";
import { describeTaskStore } from "./contracts/task-store.ts";
import { makeFolder } from "./stores/folder.ts";

describeTaskStore("a store that publishes", (now, maxQueued = 10_000) =>
  publishChanges(createMemoryStore({ now, maxQueued }), createTaskEvents()),
);

function task(url = "https://example.com/watch"): Task {
  return newTask(url, {}, new Date());
}

function changeTo(url: string): TaskEvent {
  return { type: "task", task: task(url) };
}

function urlsOf(changes: readonly TaskEvent[]): string[] {
  return changes.map(({ task: changed }) => ("url" in changed ? changed.url : "deleted"));
}

function pastUrlsOf(events: TaskEvents, id: string): string[] | undefined {
  return events.since(id)?.map(({ json }) => JSON.parse(json).url);
}

function collect(events: TaskEvents): TaskEvent[] {
  const seen: TaskEvent[] = [];
  events.subscribe((change) => seen.push(change));
  return seen;
}

describe("the feed of changes", () => {
  it("gives each change to each subscriber, in order and at once", () => {
    const events = createTaskEvents();
    const [one, two] = [collect(events), collect(events)];
    events.publish(changeTo("a"));
    expect([urlsOf(one), urlsOf(two)]).toEqual([["a"], ["a"]]);
    events.publish(changeTo("b"));
    expect(urlsOf(one)).toEqual(["a", "b"]);
    expect(two).toEqual(one);
  });

  it("gives nothing from before the subscription, nor after its end", () => {
    const events = createTaskEvents();
    events.publish(changeTo("a"));
    const seen: TaskEvent[] = [];
    const end = events.subscribe((change) => seen.push(change));
    events.publish(changeTo("b"));
    end();
    end();
    events.publish(changeTo("c"));
    expect(urlsOf(seen)).toEqual(["b"]);
  });

  it("goes on for the others when a listener throws, and reports it", () => {
    const failures: object[] = [];
    const events = createTaskEvents({ logger: { error: (fields) => failures.push(fields) } });
    const err = new Error("a defect");
    events.subscribe(() => {
      throw err;
    });
    const seen = collect(events);
    events.publish(changeTo("a"));
    expect(urlsOf(seen)).toEqual(["a"]);
    expect(failures).toEqual([{ err }]);
  });

  it("keeps the order where a listener publishes", () => {
    const events = createTaskEvents();
    events.subscribe((change) => {
      if ("url" in change.task && change.task.url === "a") events.publish(changeTo("b"));
    });
    const seen = collect(events);
    events.publish(changeTo("a"));
    expect(urlsOf(seen)).toEqual(["a", "b"]);
  });

  it("ends a subscription also while an event is being given out", () => {
    const events = createTaskEvents();
    const seen: TaskEvent[] = [];
    events.subscribe(() => end());
    const end = events.subscribe((change) => seen.push(change));
    events.publish(changeTo("a"));
    expect(seen).toEqual([]);
  });

  it("tells what came after an event, and nothing after the last", () => {
    const events = createTaskEvents();
    const start = events.lastId;
    expect(events.since(start)).toEqual([]);
    events.publish(changeTo("a"));
    const middle = events.lastId;
    events.publish(changeTo("b"));
    expect(pastUrlsOf(events, start)).toEqual(["a", "b"]);
    expect(pastUrlsOf(events, middle)).toEqual(["b"]);
    expect(events.since(events.lastId)).toEqual([]);
    expect(events.since(start)?.at(-1)?.id).toBe(events.lastId);
  });

  it("remembers from the first reading of an id on", () => {
    const events = createTaskEvents();
    events.publish(changeTo("a"));
    const [feed = ""] = events.lastId.split("-");
    expect(pastUrlsOf(events, `${feed}-0`)).toEqual([]);
    events.publish(changeTo("b"));
    expect(pastUrlsOf(events, `${feed}-0`)).toEqual(["b"]);
  });

  it("carries on a sequence from elsewhere, under the same ids as another feed", () => {
    const origin = { feedId: "elsewhere", number: 41 };
    const [one, two] = [createTaskEvents({ origin }), createTaskEvents({ origin })];
    expect(one.lastId).toBe("elsewhere-41");
    one.publish(changeTo("a"));
    two.publish(changeTo("a"), 42);
    expect(one.lastId).toBe(two.lastId);
    expect(pastUrlsOf(two, "elsewhere-41")).toEqual(["a"]);
    expect(two.since("elsewhere-40")).toBeUndefined();
  });

  it.each([
    ["a gap", 44],
    ["a step back", 30],
  ])("starts anew behind %s", (_, number) => {
    const events = createTaskEvents({ origin: { feedId: "f", number: 41 } });
    events.publish(changeTo("a"));
    events.publish(changeTo("b"), number);
    events.publish(changeTo("c"));
    expect(events.lastId).toBe(`f-${number + 1}`);
    expect([events.since("f-41"), events.since("f-42")]).toEqual([undefined, undefined]);
    expect(pastUrlsOf(events, `f-${number - 1}`)).toEqual(["b", "c"]);
  });

  it("does not know the ids of another feed, nor any other text", () => {
    const events = createTaskEvents();
    const [feed = ""] = events.lastId.split("-");
    const others = [createTaskEvents().lastId, "", "x", "-1", `${feed}-1`, `${feed}--1`];
    for (const id of [...others, `${feed}-`, `${feed}-1e3`, `${feed}-0x0`, `${feed}-0\n`]) {
      expect([id, events.since(id)]).toEqual([id, undefined]);
    }
  });

  it("reaches back as many events as it may have", () => {
    const events = createTaskEvents({ maxEvents: 3 });
    const ids = ["a", "b", "c", "d", "e"].map((url) => {
      events.publish(changeTo(url));
      return events.lastId;
    });
    expect(pastUrlsOf(events, ids[1]!)).toEqual(["c", "d", "e"]);
    expect(events.since(ids[0]!)).toBeUndefined();
  });

  it("reaches back as much text as it may keep", () => {
    const events = createTaskEvents({ maxLength: 10_000 });
    const ids = Array.from({ length: 20 }, () => {
      events.publish(changeTo("x".repeat(2_000)));
      return events.lastId;
    });
    expect(events.since(ids.at(-4)!)).toHaveLength(3);
    expect(events.since(ids.at(-6)!)).toBeUndefined();
    events.publish(changeTo("x".repeat(20_000)));
    expect(events.since(ids.at(-1)!)).toBeUndefined();
    expect(events.since(events.lastId)).toEqual([]);
    events.publish(changeTo("y"));
    expect(pastUrlsOf(events, events.lastId)).toEqual([]);
  });
});

describe("a store that publishes", () => {
  it("publishes each change once it is stored, as its caller gets it", async () => {
    const events = createTaskEvents();
    const store = publishChanges(createMemoryStore(), events);
    const seen = collect(events);
    const created = await store.create(task());
    const claim = await store.claim({ leaseMs: 1_000 });
    const canceled = await store.update(created.id, { state: "canceled" });
    await store.delete(created.id);
    expect(seen).toEqual([
      { type: "task", task: created },
      { type: "task", task: claim?.task },
      { type: "task", task: canceled },
      { type: "deleted", task: { id: created.id } },
    ]);
  });

  it("publishes before the caller hears of it", async () => {
    const events = createTaskEvents();
    const store = publishChanges(createMemoryStore(), events);
    const order: string[] = [];
    events.subscribe((change) => order.push(change.type));
    await store.create(task()).then(() => order.push("answered"));
    expect(order).toEqual(["task", "answered"]);
  });

  it("publishes nothing for what was refused, read, or answered by an idempotency key", async () => {
    const events = createTaskEvents();
    const store = publishChanges(createMemoryStore(), events);
    const key = { key: "k", fingerprint: "f" };
    const first = await store.create(task(), key);
    const before = events.lastId;
    expect((await store.create(task(), key)).id).toBe(first.id);
    await expect(store.update(first.id, { state: "succeeded" })).rejects.toThrow("cannot become");
    await expect(store.delete("nothing")).rejects.toThrow("nothing");
    await store.get(first.id);
    await store.list({ limit: 1 });
    expect(await store.claim({ leaseMs: 1, exceptHosts: ["example.com"] })).toBeUndefined();
    expect(events.lastId).toBe(before);
  });

  it.each([
    ["memory", () => createMemoryStore()],
    ["SQLite", () => openSqliteStore({ path: join(makeFolder(), "tasks.db") })],
  ])("publishes the changes of one task in their order: %s", async (_, open) => {
    const events = createTaskEvents();
    await using stack = new AsyncDisposableStack();
    const store = stack.adopt(publishChanges(open(), events), (opened) => opened.close());
    const { id } = await store.create(task());
    await store.claim({ leaseMs: 1_000 });
    const seen = collect(events);
    const attempts = Array.from({ length: 20 }, (_each, n) => store.update(id, { attempts: n }));
    await Promise.all([...attempts, store.delete(id)]);
    expect(seen.map(({ task: changed }) => ("url" in changed ? changed.attempts : "gone"))).toEqual(
      [...attempts.keys(), "gone"],
    );
  });

  it.each([
    ["memory", () => createMemoryStore()],
    ["SQLite", () => openSqliteStore({ path: join(makeFolder(), "tasks.db") })],
  ])("publishes that a task was claimed before what then became of it: %s", async (_, open) => {
    const events = createTaskEvents();
    await using stack = new AsyncDisposableStack();
    const store = stack.adopt(publishChanges(open(), events), (opened) => opened.close());
    for (const end of ["canceled", "deleted"] as const) {
      const { id } = await store.create(task());
      const seen = collect(events);
      const claim = store.claim({ leaseMs: 60_000 });
      const ended = end === "deleted" ? store.delete(id) : store.update(id, { state: end });
      await Promise.all([claim, ended]);
      const states = seen.map(({ task: changed }) =>
        "state" in changed ? changed.state : "deleted",
      );
      expect(states).toEqual(["running", end]);
    }
  });

  it("finishes the writes that wait for their turn before it closes", async () => {
    const store = publishChanges(createMemoryStore(), createTaskEvents());
    const { id } = await store.create(task());
    const writes = [1, 2, 3].map((attempts) => store.update(id, { attempts }));
    await store.close();
    expect((await Promise.all(writes)).map(({ attempts }) => attempts)).toEqual([1, 2, 3]);
  });
});
