import { existsSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { accessKeyOf } from "../../src/keys/secrets.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { maxDelayMs } from "../../src/stores/store.ts";
import { idempotencyTtlMs } from "../../src/stores/store-types.ts";
import { noTasks } from "../../src/feed/collection-changes.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { describeTaskStore } from "../contracts/task-store.ts";
import { collect, entryUrl } from "../contracts/task-store/collections.ts";
import {
  collectEvents,
  createTestClock,
  idsOf,
  minuteMs,
  type OpenStore,
  openStoreHarness,
  times,
} from "../contracts/task-store/harness.ts";
import { makeFolder } from "../folder.ts";
import { createTestLog } from "../log.ts";

let opened = "";
const open: OpenStore = (options) => {
  opened = join(makeFolder(), "tasks.db");
  return openSqliteStore({ path: opened, ...options });
};

open.replaceDocuments = async (store, documents) => {
  await store.close();
  replaceDocuments(opened, documents);
  const { log, logger } = createTestLog();
  return { store: openSqliteStore({ path: opened, logger }), log };
};

describeTaskStore("the SQLite store", open);

function replaceDocuments(file: string, documents: Map<string, string>): void {
  using db = new DatabaseSync(file);
  const update = db.prepare("UPDATE tasks SET document = ? WHERE id = ?");
  for (const [id, document] of documents) update.run(document, id);
}

test("a SQLite store is opened where a symbolic link leads", async () => {
  const target = join(makeFolder(), "tasks.db");
  const link = join(makeFolder(), "link.db");
  await openSqliteStore({ path: target }).close();
  symlinkSync(target, link);
  const store = openSqliteStore({ path: link });
  onTestFinished(() => store.close());
  const { id } = await store.create(newTask("https://video.example.com/", {}, new Date()));
  await store.ping();
  expect(await store.get(id)).toMatchObject({ id });
});

describe("a SQLite store that is closed and opened again", () => {
  test("has its tasks, their order and their queue", async () => {
    const { reopen, path, now } = startFile();
    const before = await openStoreHarness(() => openSqliteStore({ path, now }));
    const created = await Promise.all(times(20, (n) => before.add(`https://${n % 3}.test/`)));
    const { task: first } = await before.claim();
    await before.store.update(first.id, { state: "canceled" });
    await before.store.close();

    const store = reopen();
    const { tasks, next } = await store.list({ limit: 19 });
    expect(idsOf(tasks)).toEqual(idsOf(created.slice(1)).toReversed());
    const [oldest] = (await store.list({ limit: 1, before: next ?? 0 })).tasks;
    expect(oldest).toMatchObject({ id: first.id, state: "canceled", attempts: 1 });
    const claim = await store.claim({ leaseMs: minuteMs, exceptHosts: ["1.test"] });
    expect(claim?.task.id).toBe(created[2]?.id);
  });

  test("keeps the delays of retries", async () => {
    const { reopen, clock, waiting } = await startWithDelayedRetry();

    const store = reopen();
    expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    clock.advance(minuteMs);
    expect((await store.claim({ leaseMs: minuteMs }))?.task.id).toBe(waiting.id);
  });

  test("ends a delay that was stored while the clock was two days ahead", async () => {
    const { reopen, clock, waiting } = await startWithDelayedRetry();

    clock.jump(-2 * maxDelayMs);
    expect((await reopen().claim({ leaseMs: minuteMs }))?.task.id).toBe(waiting.id);
  });

  test("ends a delay that began, by the clock, later than now, and keeps one that began before", async () => {
    const { reopen, clock, waiting } = await startWithDelayedRetry();
    clock.advance(minuteMs / 2);
    clock.jump(-minuteMs / 4);
    const store = reopen();
    expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    await store.close();
    clock.jump(-minuteMs);
    expect((await reopen().claim({ leaseMs: minuteMs }))?.task.id).toBe(waiting.id);
  });

  test("has messages of webhooks that were stored by a clock that was five hours ahead due at once", async () => {
    const { path, now, clock } = startFile();
    const before = await openStoreHarness(() => openSqliteStore({ path, now, webhook: true }));
    await before.store.update((await before.add()).id, { state: "canceled" });
    await before.store.close();
    clock.jump(-300 * minuteMs);
    const store = openSqliteStore({ path, now, webhook: true });
    onTestFinished(() => store.close());
    expect(await store.outbox.due()).toHaveLength(1);
  });

  test("logs the damaged records, before they are listed", async () => {
    const { path, now } = startFile();
    const before = await openStoreHarness(() => openSqliteStore({ path, now }));
    const [bad, empty] = [await before.add(), await before.add(), await before.add()];
    await before.store.close();
    replaceDocuments(
      path,
      new Map([
        [bad.id, "{"],
        [empty.id, "{}"],
      ]),
    );

    const { log, logger } = createTestLog();
    await openSqliteStore({ path, now, logger }).close();
    const msg = "damaged task: it is not listed and does not run; DELETE /tasks/{id} removes it";
    expect(log).toEqual([
      {
        level: "error",
        task: empty.id,
        seq: 2,
        reason: `the record of task ${empty.id} is damaged: it is not a task`,
        msg,
      },
      { level: "error", task: bad.id, seq: 1, reason: `the record of task ${bad.id} is damaged: it is not JSON`, msg },
    ]);
  });

  test("lets claims take at once what the previous process was running, oldest first", async () => {
    const { reopen, path, now } = startFile();
    const before = await openStoreHarness(() => openSqliteStore({ path, now }));
    const [first, second, byHand] = [await before.add(), await before.add(), await before.add()];
    const { lease } = await before.claim();
    await before.store.update(first.id, {}, { lease, stalledCount: 1 });
    await before.claim();
    await before.store.update(byHand.id, { state: "running" });
    await before.store.close();

    const store = reopen();
    const query = { leaseMs: minuteMs };
    const claim = await store.claim(query);
    expect(claim).toMatchObject({ stalledCount: 1, task: { id: first.id, attempts: 1 } });
    expect(claim?.lease).not.toBe(lease);
    expect(await store.claim(query)).toMatchObject({ stalledCount: 0, task: { id: second.id } });
    expect(await store.claim(query)).toBeUndefined();
  });

  test.each(["canceled", "deleted"])("ends the members that were left when a collection was %s", async (end) => {
    const { reopen, path, now } = startFile();
    const before = await openStoreHarness(() => openSqliteStore({ path, now }));
    const single = await before.add();
    const { id } = await collect(before, times(2_500, entryUrl));
    const events = collectEvents(before.store);
    const ending = end === "canceled" ? before.store.update(id, { state: "canceled" }) : before.store.delete(id);
    await events.take(1);
    await Promise.all([before.store.close(), expect(ending).rejects.toMatchObject({ code: "unavailable" })]);

    const store = reopen();
    expect((await store.count()).byState.queued).toBeGreaterThan(1);
    const claim = await store.claim({ leaseMs: minuteMs });
    expect(claim?.task.id).toBe(single.id);
    const canceled = end === "canceled" ? 2_501 : 0;
    expect((await store.count()).byState).toEqual({ ...noTasks, running: 1, canceled });
  });

  test("counts its queued tasks", async () => {
    const { path, now } = startFile();
    const before = await openStoreHarness(() => openSqliteStore({ path, now }));
    for (const { id } of await Promise.all(times(5, () => before.add())).then((all) => all.slice(3)))
      await before.store.update(id, { state: "canceled" });
    await before.store.close();

    const { add } = await openStoreHarness(() => openSqliteStore({ path, now, maxQueued: 4 }));
    await add();
    await expect(add()).rejects.toMatchObject({ code: "unavailable" });
  });

  test("keeps idempotency keys until they expire", async () => {
    const { reopen, path, now, clock } = startFile();
    const idempotency = { key: "key", fingerprint: "f" };
    const task = newTask("https://video.example.com/", {}, now());
    const before = openSqliteStore({ path, now });
    await before.create(task, idempotency);
    await before.delete(task.id);
    await before.close();

    const store = reopen();
    const retried = newTask("https://video.example.com/", {}, now());
    expect(await store.create(retried, idempotency)).toEqual(task);
    clock.advance(idempotencyTtlMs);
    expect(await store.create(retried, idempotency)).toEqual(retried);
  });

  test("keeps no more than a little under an idempotency key, however long the request is", async () => {
    const { path, now } = startFile();
    const store = openSqliteStore({ path, now });
    const entries = times(100, (n) => `https://video.example.com/${"x".repeat(600)}/${n}`);
    for (const key of times(50, String)) {
      const { id } = await store.create(newTask("https://video.example.com/", { entries }, now()), {
        key,
        fingerprint: "f",
      });
      await store.delete(id);
    }
    await store.close();
    expect(statSync(path).size).toBeLessThan(1_000_000);
  });

  test("gives the answers that earlier releases kept under idempotency keys", async () => {
    const { reopen, path, now } = startFile();
    const idempotency = { key: "key", fingerprint: "f" };
    const task = newTask("https://video.example.com/", { entries: "1-3" }, now());
    const before = openSqliteStore({ path, now });
    await before.create(task, idempotency);
    await before.close();
    const db = new DatabaseSync(path);
    db.prepare("UPDATE idempotency_keys SET answer = ?").run(JSON.stringify(task));
    db.close();
    expect(await reopen().create(newTask(task.url, task.options, now()), idempotency)).toEqual(task);
  });

  test("reuses no sequence number, not even that of a deleted newest task", async () => {
    const { reopen, path, now } = startFile();
    const before = await openStoreHarness(() => openSqliteStore({ path, now }));
    const limits = { max_queued: 1 };
    await before.store.keys.add(accessKeyOf("x", { name: "anna", admin: false, limits }, now()));
    await before.add();
    const add = () => before.add("https://video.example.com/", {}, "anna");
    const newest = await add();
    // What is refused takes no number.
    await expect(add()).rejects.toMatchObject({ code: "quota_exceeded" });
    const { next = Infinity } = await before.store.list({ limit: 1 });
    await before.store.delete(newest.id);
    await before.store.close();

    const store = reopen();
    await store.create(newTask("https://video.example.com/", {}, now()));
    expect((await store.list({ limit: 1 })).next).toBeGreaterThan(next);
  });

  test("leaves one file when it is closed", async () => {
    const { reopen, path } = startFile();
    await reopen().close();
    expect(existsSync(path)).toBe(true);
    expect(existsSync(`${path}-wal`)).toBe(false);
  });
});

/** A file with a task that is queued again with a delay of a minute; the store is closed. */
async function startWithDelayedRetry() {
  const file = startFile();
  const { path, now } = file;
  const before = await openStoreHarness(() => openSqliteStore({ path, now }));
  const waiting = await before.add();
  await before.claim();
  const runAfter = new Date(now().getTime() + minuteMs);
  await before.store.update(waiting.id, { state: "queued" }, { runAfter });
  await before.store.close();
  return { ...file, waiting };
}

describe("a collection with many members that ends", () => {
  test("lets writes and claims of others come between those of its members", async () => {
    const harness = await openStoreHarness(open);
    const { id } = await collect(harness, times(2_500, entryUrl));
    const ended: string[] = [];
    const canceling = harness.store.update(id, { state: "canceled" }).then(() => ended.push("collection"));
    const { id: other } = await harness.add(undefined, undefined, "anna");
    const claim = harness.claim().then(({ task }) => ended.push(task.id));
    await Promise.all([canceling, claim]);
    expect(ended).toEqual([other, "collection"]);
  });

  test("leaves none of them if it is deleted while it is canceled", async () => {
    const harness = await openStoreHarness(open);
    const { id } = await collect(harness, times(2_500, entryUrl));
    const canceling = harness.store.update(id, { state: "canceled" });
    await collectEvents(harness.store).take(1);
    await harness.store.delete(id);
    expect(await canceling).toMatchObject({ id, state: "canceled" });
    expect((await harness.store.count()).byState).toEqual(noTasks);
  });

  test("cancels no further member once it is queued again", async () => {
    const harness = await openStoreHarness(open);
    const { store } = harness;
    const { id } = await collect(harness, times(2_500, entryUrl));
    const canceling = store.update(id, { state: "canceled" });
    await store.update(id, { state: "queued" });
    expect(await canceling).toMatchObject({ id, state: "queued" });
    const { byState } = await store.count();
    expect(byState.queued).toBeGreaterThan(1);
    await harness.claim();
    expect((await store.count()).byState).toMatchObject({ queued: byState.queued - 1, canceled: byState.canceled });
  });
});

function startFile() {
  const clock = createTestClock();
  const path = join(makeFolder(), "not", "there", "yet", "tasks.db");
  const reopen = () => {
    const store = openSqliteStore({ path, now: clock.now });
    onTestFinished(() => store.close());
    return store;
  };
  return { clock, now: clock.now, path, reopen };
}
