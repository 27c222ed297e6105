import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createMemoryStore, openSqliteStore } from "../src/stores/sqlite/sqlite-store.ts";
import {
  changeEvent,
  createTaskEvents,
  deletedEvent,
  type PublishedEvent,
  type TaskEvent,
  type TaskEvents,
} from "../src/feed/task-events.ts";
import { newTask } from "../src/feed/task-changes.ts";
import { makeFolder } from "./folder.ts";
import { createIntegers, seed } from "./random.ts";

function eventOf(url: string, owner?: string): TaskEvent {
  const task = newTask(url, {}, new Date(), owner);
  return changeEvent(task, JSON.stringify(task));
}

function urlsOf(events: readonly TaskEvent[] | undefined): string[] | undefined {
  return events?.map(({ json }) => JSON.parse(json).url);
}

function collect(events: TaskEvents): PublishedEvent[] {
  const seen: PublishedEvent[] = [];
  events.subscribe((event) => seen.push(event));
  return seen;
}

describe("the feed of task events", () => {
  it("calls each subscriber with each event, in order and synchronously", () => {
    const events = createTaskEvents();
    const [one, two] = [collect(events), collect(events)];
    events.publish(eventOf("a"));
    expect([urlsOf(one), urlsOf(two)]).toEqual([["a"], ["a"]]);
    events.publish(eventOf("b"));
    expect(urlsOf(one)).toEqual(["a", "b"]);
    expect(two).toEqual(one);
  });

  it("calls a subscriber with nothing from before the subscription or after its end", () => {
    const events = createTaskEvents();
    events.publish(eventOf("a"));
    const seen: TaskEvent[] = [];
    const end = events.subscribe((event) => seen.push(event));
    events.publish(eventOf("b"));
    end();
    end();
    events.publish(eventOf("c"));
    expect(urlsOf(seen)).toEqual(["b"]);
  });

  it("calls the others when a listener throws, and reports the error", () => {
    const failures: object[] = [];
    const events = createTaskEvents({ logger: { error: (fields) => failures.push(fields) } });
    const err = new Error("a defect");
    events.subscribe(() => {
      throw err;
    });
    const seen = collect(events);
    events.publish(eventOf("a"));
    expect(urlsOf(seen)).toEqual(["a"]);
    expect(failures).toEqual([{ err }]);
  });

  it("keeps the order if a listener publishes", () => {
    const events = createTaskEvents();
    events.subscribe((event) => {
      if (JSON.parse(event.json).url === "a") events.publish(eventOf("b"));
    });
    const seen = collect(events);
    events.publish(eventOf("a"));
    expect(urlsOf(seen)).toEqual(["a", "b"]);
  });

  it("ends a subscription also while an event is being delivered", () => {
    const events = createTaskEvents();
    const seen: TaskEvent[] = [];
    events.subscribe(() => end());
    const end = events.subscribe((event) => seen.push(event));
    events.publish(eventOf("a"));
    expect(seen).toEqual([]);
  });

  it("returns what came after an event, and nothing after the last", () => {
    const events = createTaskEvents();
    const start = events.lastId;
    expect(events.since(start)).toEqual([]);
    events.publish(eventOf("a"));
    const middle = events.lastId;
    events.publish(eventOf("b"));
    expect(urlsOf(events.since(start))).toEqual(["a", "b"]);
    expect(urlsOf(events.since(middle))).toEqual(["b"]);
    expect([urlsOf(events.since(start, { count: 1 })), urlsOf(events.since(start, { count: 3 }))]).toEqual([
      ["a"],
      ["a", "b"],
    ]);
    expect(events.since(events.lastId)).toEqual([]);
    expect(events.since(start)?.at(-1)?.id).toBe(events.lastId);
  });

  it("keeps what was published before anything was read or subscribed to", () => {
    const events = createTaskEvents();
    events.publish(eventOf("a"));
    const [feed = ""] = events.lastId.split("-");
    expect(urlsOf(events.since(`${feed}-0`))).toEqual(["a"]);
  });

  it("passes on the text of an event as it was published, with an id", () => {
    const events = createTaskEvents();
    const seen = collect(events);
    const start = events.lastId;
    const published = [eventOf("a"), deletedEvent("x", null)];
    for (const event of published) events.publish(event);
    expect(seen).toEqual(published.map((event) => ({ ...event, id: expect.any(String) })));
    expect(events.since(start)).toEqual(seen);
    expect(seen[1]).toMatchObject({ type: "deleted", taskId: "x", json: '{"id":"x"}' });
    expect(seen[1]?.id).toBe(events.lastId);
  });

  it("continues a sequence from elsewhere, under the same ids as another feed", () => {
    const origin = { feedId: "elsewhere", number: 41 };
    const [one, two] = [createTaskEvents({ origin }), createTaskEvents({ origin })];
    expect(one.lastId).toBe("elsewhere-41");
    one.publish(eventOf("a"));
    two.publish(eventOf("a"), 42);
    expect(one.lastId).toBe(two.lastId);
    expect(urlsOf(two.since("elsewhere-41"))).toEqual(["a"]);
    expect(two.since("elsewhere-40")).toBeUndefined();
  });

  it.each([
    ["a gap", 44],
    ["a step back", 30],
  ])("reaches back no further than to %s", (_, number) => {
    const events = createTaskEvents({ origin: { feedId: "f", number: 41 } });
    events.publish(eventOf("a"));
    events.publish(eventOf("b"), number);
    events.publish(eventOf("c"));
    expect(events.lastId).toBe(`f-${number + 1}`);
    expect([events.since("f-41"), events.since("f-42")]).toEqual([undefined, undefined]);
    expect(urlsOf(events.since(`f-${number - 1}`))).toEqual(["b", "c"]);
  });

  it("does not know the ids of another feed or any other text", () => {
    const events = createTaskEvents();
    const [feed = ""] = events.lastId.split("-");
    const others = [createTaskEvents().lastId, "", "x", "-1", `${feed}-1`, `${feed}--1`];
    for (const id of [...others, `${feed}-`, `${feed}-1e3`, `${feed}-0x0`, `${feed}-0\n`]) {
      expect([id, events.since(id)]).toEqual([id, undefined]);
    }
  });

  it("reaches back as many events as it may keep", () => {
    const events = createTaskEvents({ maxEvents: 3 });
    const ids = ["a", "b", "c", "d", "e"].map((url) => {
      events.publish(eventOf(url));
      return events.lastId;
    });
    expect(urlsOf(events.since(ids[1]!))).toEqual(["c", "d", "e"]);
    expect(events.since(ids[0]!)).toBeUndefined();
  });

  it("reaches back as much text as it may keep", () => {
    const events = createTaskEvents({ maxLength: 10_000 });
    const ids = Array.from({ length: 20 }, () => {
      events.publish(eventOf("x".repeat(2_000)));
      return events.lastId;
    });
    expect(events.since(ids.at(-4)!)).toHaveLength(3);
    expect(events.since(ids.at(-6)!)).toBeUndefined();
    events.publish(eventOf("x".repeat(20_000)));
    expect(events.since(ids.at(-1)!)).toBeUndefined();
    expect(events.since(events.lastId)).toEqual([]);
    events.publish(eventOf("y"));
    expect(urlsOf(events.since(events.lastId))).toEqual([]);
  });
});

describe("what the feed keeps of each owner", () => {
  it("is not pushed out by the events of another, who loses its own", () => {
    const events = createTaskEvents({ maxEvents: 10 });
    const start = events.lastId;
    events.publish(eventOf("hers", "anna"));
    const middle = events.lastId;
    for (let n = 1; n <= 1_000; n += 1) events.publish(eventOf(`his ${n}`, "bert"));
    events.publish(eventOf("hers too", "anna"));
    expect(urlsOf(events.since(start, { owner: "anna" }))).toEqual(["hers", "hers too"]);
    expect(urlsOf(events.since(middle, { owner: "anna" }))).toEqual(["hers too"]);
    expect(events.since(start, { owner: "cora" })).toEqual([]);
    expect(events.since(middle, { owner: "bert" })).toBeUndefined();
    expect(events.since(middle)).toBeUndefined();
  });

  it("is as much text as that of the others, however many events it is", () => {
    const events = createTaskEvents({ maxLength: 100_000 });
    const start = events.lastId;
    for (let n = 1; n <= 50; n += 1) {
      events.publish(eventOf(`hers ${n}`, "anna"));
      events.publish(eventOf("x".repeat(20_000), "bert"));
    }
    expect(events.since(start, { owner: "anna" })).toHaveLength(50);
    expect(events.since(start, { owner: "bert" })).toBeUndefined();
  });

  it("is, of the newest half of all events, each one, however few others it has: clients that are a moment behind miss none", () => {
    const events = createTaskEvents({ maxEvents: 100 });
    for (let n = 1; n <= 200; n += 1) events.publish(eventOf("an old one", `${n}`));
    const middle = events.lastId;
    for (let n = 1; n <= 50; n += 1) events.publish(eventOf(`${n}`, "anna"));
    expect(events.since(middle, { owner: "anna" })).toHaveLength(50);
    expect(events.since(middle)).toHaveLength(50);
  });

  it("is all that it has had since the id, or nothing is said", () => {
    const pick = createIntegers(seed);
    const events = createTaskEvents({ maxEvents: 40, maxLength: 40_000 });
    const published: PublishedEvent[] = [];
    const ids = [events.lastId];
    events.subscribe((event) => void published.push(event));
    let known = 0;
    for (let n = 0; n < 2_000; n += 1) {
      const owner = ["anna", "bert", "cora", "dora", undefined][pick(10) % (1 + pick(5))];
      events.publish(eventOf("x".repeat(pick(10) === 0 ? pick(9_000) : 10), owner));
      ids.push(events.lastId);
      const from = Math.max(0, n - pick(100));
      const asked = ["anna", "bert", "cora", "dora", undefined][pick(5)];
      const missed = published.slice(from).filter((event) => (asked ?? event.owner) === event.owner);
      const count = pick(30);
      const found = events.since(ids[from] ?? "", { owner: asked, count });
      if (found !== undefined) expect(found).toEqual(missed.slice(0, count));
      known += Number(found !== undefined);
    }
    expect(known).toBeGreaterThan(500);
  });
});

describe.each([
  ["memory", () => createMemoryStore()],
  ["SQLite", () => openSqliteStore({ path: join(makeFolder(), "tasks.db") })],
])("the %s store", (_name, open) => {
  it("publishes before the caller hears of it, and what was accepted before it closes", async () => {
    const store = open();
    const order: string[] = [];
    store.events.subscribe(({ type }) => order.push(type));
    const { id } = await store.create(newTask("https://example.com/", {}, new Date()));
    order.push("created");
    const deleting = store.delete(id).then(() => order.push("removed"));
    await store.close();
    await deleting;
    expect(order).toEqual(["task", "created", "deleted", "removed"]);
  });
});
