import { expect, onTestFinished, test } from "vitest";
import { connectionConfig, createDatabase } from "../../../src/stores/postgres/database.ts";
import { prune } from "../../../src/stores/postgres/feed/event-rows.ts";
import { openEventFeed } from "../../../src/stores/postgres/feed/feed.ts";
import { openDatabase } from "../../postgres/database.ts";
import {
  connect,
  follow,
  idsAfter,
  makeTables,
  numbered,
  pollOptions,
  write,
  writeAll,
  writeMany,
} from "./feed-harness.ts";

test("every feed of a database publishes each change, in order, as it was written", async () => {
  const { url, pool } = await makeTables();
  const feeds = [await follow(pool, url), await follow(pool, url)];
  const changes: unknown[] = [];
  feeds[0]?.events.subscribe((change) => changes.push(change));
  await writeAll(pool, ["a", "b"]);
  await write(pool, "a", "deleted");
  for (const { received } of feeds) await expect.poll(() => received, pollOptions).toEqual(["a", "b", "a"]);
  expect(changes).toMatchObject([
    { type: "task", taskId: "a", json: '{"id":"a"}' },
    { type: "task", taskId: "b", json: '{"id":"b"}' },
    { type: "deleted", taskId: "a", state: undefined },
  ]);
});

test("an id of one feed is known to another, and to one that is opened later", async () => {
  const { url, pool } = await makeTables();
  const [one, other] = [await follow(pool, url), await follow(pool, url)];
  const start = one.events.lastId;
  await writeAll(pool, ["a", "b"]);
  for (const { received } of [one, other]) await expect.poll(() => received, pollOptions).toHaveLength(2);
  const [first] = one.events.since(start) ?? [];
  expect(other.events.since(start)).toEqual(one.events.since(start));
  await Promise.all([one.close(), other.close()]);
  await write(pool, "c");
  const later = await follow(pool, url);
  expect(idsAfter(later, start)).toEqual(["a", "b", "c"]);
  expect(idsAfter(later, first?.id ?? "")).toEqual(["b", "c"]);
  expect(later.received).toEqual([]);
  await write(pool, "d");
  await expect.poll(() => later.received, pollOptions).toEqual(["d"]);
});

test("a feed does not know the ids of another database's feed", async () => {
  const [one, other] = [await makeTables(), await makeTables()];
  const { events } = await follow(one.pool, one.url);
  expect((await follow(other.pool, other.url)).events.since(events.lastId)).toBeUndefined();
});

test("a feed reaches back as far as there are rows", async () => {
  const { url, pool } = await makeTables();
  const start = (await follow(pool, url)).events.lastId;
  await writeAll(pool, ["a", "b", "c"]);
  await pool.query("DELETE FROM unreel.task_events WHERE number = 1");
  const later = await follow(pool, url);
  expect(later.events.since(start)).toBeUndefined();
  expect(idsAfter(later, start.replace(/0$/, "1"))).toEqual(["b", "c"]);
  await pool.query("DELETE FROM unreel.task_events");
  const bare = await follow(pool, url);
  const last = later.events.lastId;
  expect([bare.events.lastId, bare.events.since(last)]).toEqual([last, []]);
  await write(pool, "d");
  await expect.poll(() => idsAfter(bare, last), pollOptions).toEqual(["d"]);
});

test("a feed reads no more old rows than it keeps", async () => {
  const { url, pool } = await makeTables();
  const start = (await follow(pool, url)).events.lastId;
  const large = JSON.stringify({ id: "large", text: "x".repeat(6 * 1024 * 1024) });
  for (let n = 0; n < 4; n += 1) await write(pool, "large", "task", large);
  const { events } = await follow(pool, url);
  expect(events.since(start.replace(/0$/, "1"))).toBeUndefined();
  expect(events.since(start.replace(/0$/, "2"))).toHaveLength(2);
});

test("a feed that is opened later has the events of owners whom another would have pushed out", async () => {
  const { url, pool } = await makeTables();
  const start = (await follow(pool, url)).events.lastId;
  const database = createDatabase(connectionConfig(url), () => {});
  onTestFinished(database.close);
  await writeMany(pool, "anna", 3);
  const middle = start.replace(/0$/, "2");
  await writeMany(pool, "bert", 15_000);
  await prune(database, 15_003, new Date());
  const { events } = await follow(pool, url);
  const idsOf = (owner: string, after: string) => events.since(after, { owner })?.map(({ taskId }) => taskId);
  expect([idsOf("anna", start), idsOf("anna", middle)]).toEqual([["anna1", "anna2", "anna3"], ["anna3"]]);
  expect([idsOf("bert", middle), events.since(middle)]).toEqual([undefined, undefined]);
  expect(idsOf("cora", start.replace(/0$/, "15000"))).toEqual([]);
  const { rows } = await pool.query("SELECT count(*)::integer AS count FROM unreel.task_events");
  expect(rows).toEqual([{ count: 12_000 }]);
});

test("1,000 changes by two writers at once arrive once and in their order", async () => {
  const { url, pool } = await makeTables();
  const feeds = [await follow(pool, url), await follow(connect(url), url)];
  const start = feeds[0]?.events.lastId ?? "";
  await Promise.all(["a", "b"].map((name) => writeAll(connect(url), numbered(name, 500))));
  const { rows } = await pool.query("SELECT task_id FROM unreel.task_events ORDER BY number");
  const written = rows.map(({ task_id: id }) => String(id));
  expect(written).toHaveLength(1_000);
  for (const feed of feeds) {
    await expect.poll(() => feed.received.length, pollOptions).toBeGreaterThanOrEqual(1_000);
    expect(feed.received).toEqual(written);
    expect(idsAfter(feed, start)).toEqual(written);
  }
});

test("a change written by a listener is published too", async () => {
  const { url, pool } = await makeTables();
  const { events, received } = await follow(pool, url);
  events.subscribe(({ taskId }) => void (taskId === "a" && write(pool, "b")));
  await write(pool, "a");
  await expect.poll(() => received, pollOptions).toEqual(["a", "b"]);
});

test("a feed of a database without its tables does not open", async () => {
  const url = await openDatabase();
  const opened = openEventFeed({ pool: connect(url), connection: connectionConfig(url) });
  await expect(opened).rejects.toThrow("unreel.counters");
});
