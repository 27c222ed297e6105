import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSqliteStore } from "../../src/stores/sqlite.ts";
import { idempotencyTtlMs } from "../../src/stores/store.ts";
import { newTask } from "../../src/task.ts";
import { describeTaskStore } from "../contracts/task-store.ts";
import { createClock, idsOf, minuteMs, startTrial, times } from "../contracts/task-store/trial.ts";
import { makeFolder } from "./folder.ts";

describeTaskStore("the SQLite store", (now) =>
  openSqliteStore({ path: join(makeFolder(), "tasks.db"), now }),
);

describe("a SQLite store that is closed and opened again", () => {
  test("has its tasks, their order and their queue", async () => {
    const { reopen, path, now } = startFile();
    const before = await startTrial(() => openSqliteStore({ path, now }));
    const created = await Promise.all(times(20, (n) => before.add(`https://${n % 3}.test/`)));
    const { task: first } = await before.claim();
    await before.store.close();

    const store = reopen();
    const { tasks, next } = await store.list({ limit: 19 });
    expect(idsOf(tasks)).toEqual(idsOf(created.slice(1)).toReversed());
    expect((await store.list({ limit: 1, before: next ?? 0 })).tasks).toEqual([first]);
    const claim = await store.claim({ leaseMs: minuteMs, exceptHosts: ["1.test"] });
    expect(claim?.task.id).toBe(created[2]?.id);
  });

  test("knows the leases and waits of before", async () => {
    const { reopen, path, now, clock } = startFile();
    const before = await startTrial(() => openSqliteStore({ path, now }));
    const [held, waiting] = [await before.add(), await before.add()];
    const { lease } = await before.claim();
    await before.claim();
    const runAfter = new Date(now().getTime() + 2 * minuteMs);
    await before.store.update(waiting.id, { state: "queued" }, { runAfter });
    await before.store.close();

    const store = reopen();
    expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    expect(await store.heartbeat(held.id, lease, minuteMs)).toBe(true);
    clock.advance(minuteMs);
    expect((await store.claim({ leaseMs: 10 * minuteMs }))?.task.id).toBe(held.id);
    clock.advance(minuteMs);
    expect((await store.claim({ leaseMs: minuteMs }))?.task.id).toBe(waiting.id);
  });

  test("remembers idempotency keys until they end", async () => {
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

  test("uses no sequence number again, even of a deleted newest task", async () => {
    const { reopen, path, now } = startFile();
    const before = await startTrial(() => openSqliteStore({ path, now }));
    await before.add();
    const newest = await before.add();
    const { next = Infinity } = await before.store.list({ limit: 1 });
    await before.store.delete(newest.id);
    await before.store.close();

    const store = reopen();
    await store.create(newTask("https://video.example.com/", {}, now()));
    expect((await store.list({ limit: 1 })).next).toBeGreaterThan(next);
  });

  test("leaves one file behind when it is closed", async () => {
    const { reopen, path } = startFile();
    await reopen().close();
    expect(existsSync(path)).toBe(true);
    expect(existsSync(`${path}-wal`)).toBe(false);
  });
});

function startFile() {
  const clock = createClock();
  const path = join(makeFolder(), "not", "there", "yet", "tasks.db");
  return { clock, now: clock.now, path, reopen: () => openSqliteStore({ path, now: clock.now }) };
}
