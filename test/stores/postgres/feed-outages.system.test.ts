import type { Pool } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { type CuttingProxy, startCuttingProxy } from "../../postgres/cutting-proxy.ts";
import { follow, makeTables, numbered, pollOptions, write, writeAll } from "./feed-harness.ts";

const outage = ["task event listener disconnected; reconnecting", "task event listener reconnected"];

/** `url` connects through the proxy, `pool` directly. */
async function makeDisturbed(): Promise<{ pool: Pool; proxy: CuttingProxy; url: string }> {
  const { url, pool } = await makeTables();
  const proxy = await startCuttingProxy(url);
  onTestFinished(proxy.close);
  return { pool, proxy, url: proxy.url(new URL(url).pathname.slice(1)) };
}

test("a feed whose connection is terminated repeatedly loses nothing", async () => {
  const { url, pool } = await makeTables();
  const { received, log } = await follow(pool, url);
  const ids = numbered("a", 300);
  for (const [n, id] of ids.entries()) {
    await write(pool, id);
    if (n % 100 !== 50) continue;
    await expect.poll(() => received, pollOptions).toContain(id);
    await pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
  }
  await expect.poll(() => received.length, pollOptions).toBeGreaterThanOrEqual(ids.length);
  expect(received).toEqual(ids);
  expect(log).toEqual([...outage, ...outage, ...outage]);
});

test("changes written while the network was cut follow, and the log has two lines", async () => {
  const { pool, proxy, url } = await makeDisturbed();
  const { received, log } = await follow(pool, url);
  await write(pool, "a");
  await expect.poll(() => received, pollOptions).toEqual(["a"]);
  proxy.cut();
  const ids = numbered("b", 450);
  await writeAll(pool, ids);
  await expect.poll(() => log, pollOptions).toHaveLength(1);
  proxy.restore();
  await expect.poll(() => received, pollOptions).toEqual(["a", ...ids]);
  expect(log).toEqual(outage);
});

test("a stalled network is noticed, and the old connection is closed", async () => {
  const { pool, proxy, url } = await makeDisturbed();
  const { received, log } = await follow(pool, url);
  await write(pool, "a");
  await expect.poll(() => received, pollOptions).toEqual(["a"]);
  proxy.stall();
  await write(pool, "b");
  await expect.poll(() => log, pollOptions).toHaveLength(1);
  proxy.restore();
  await expect.poll(() => received, pollOptions).toEqual(["a", "b"]);
  expect(log).toEqual(outage);
  const count = `SELECT count(*)::int AS others FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`;
  await expect.poll(() => pool.query(count).then(({ rows }) => rows), pollOptions).toEqual([{ others: 1 }]);
});

test("a feed that missed deleted rows continues, and reaches back no further", async () => {
  const { pool, proxy, url } = await makeDisturbed();
  const feed = await follow(pool, url);
  const start = feed.events.lastId;
  await write(pool, "a");
  await expect.poll(() => feed.received, pollOptions).toEqual(["a"]);
  const middle = feed.events.lastId;
  proxy.cut();
  await writeAll(pool, ["b", "c", "d"]);
  await pool.query("DELETE FROM unreel.task_events WHERE task_id < 'c'");
  proxy.restore();
  await expect.poll(() => feed.received, pollOptions).toEqual(["a", "c", "d"]);
  expect([feed.events.since(start), feed.events.since(middle)]).toEqual([undefined, undefined]);
  expect(feed.events.since(feed.events.lastId)).toEqual([]);
});

test("a feed whose database has lost its last changes publishes those that replace them", async () => {
  const { pool, proxy, url } = await makeDisturbed();
  const feed = await follow(pool, url);
  await writeAll(pool, ["a", "b", "c"]);
  await expect.poll(() => feed.received, pollOptions).toEqual(["a", "b", "c"]);
  const before = feed.events.lastId;
  proxy.cut();
  await pool.query("DELETE FROM unreel.task_events WHERE number > 1; UPDATE unreel.counters SET events = 1");
  proxy.restore();
  await expect.poll(() => feed.log, pollOptions).toEqual(outage);
  await write(pool, "d");
  await expect.poll(() => feed.received, pollOptions).toEqual(["a", "b", "c", "d"]);
  expect(feed.events.since(before)).toBeUndefined();
});

test("a feed closes at once, also twice and during an outage", async () => {
  const { pool, proxy, url } = await makeDisturbed();
  const feeds = [await follow(pool, url), await follow(pool, url)];
  await feeds[0]?.close();
  await write(pool, "a");
  await expect.poll(() => feeds[1]?.received, pollOptions).toEqual(["a"]);
  proxy.stall();
  const silent = await follow(pool, url);
  await Promise.all([...feeds, silent, silent].map((feed) => feed.close()));
  expect([feeds[0]?.received, silent.received, silent.log]).toEqual([[], [], []]);
  proxy.cut();
  const refused = await follow(pool, url);
  await expect.poll(() => refused.log, pollOptions).toHaveLength(1);
  await refused.close();
  await refused.close();
});
