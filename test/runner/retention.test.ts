import { randomUUIDv7 } from "node:crypto";
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { oldMs } from "../../src/files/files.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { addFile } from "../contracts/task-store/files.ts";
import { moveTo } from "../contracts/task-store/transitions.ts";
import { createTestClock, openStoreHarness, times } from "../contracts/task-store/harness.ts";
import { neverEnd } from "./engine.ts";
import { createTestFiles } from "./files.ts";
import { createRunnerHarness } from "./harness.ts";

const day = 24 * 3600;

test("finished tasks older than the retention are deleted, with their files", async () => {
  const harness = await openStoreHarness(({ now }) => createMemoryStore({ now }));
  const ended = await Promise.all(
    times(120, (n) => moveTo(harness, (["succeeded", "failed", "canceled"] as const)[n % 3]!)),
  );
  const unfinished = await moveTo(harness, "running");
  harness.clock.advance(day * 1000);
  const young = await moveTo(harness, "failed");
  harness.clock.advance(1);
  const { runner, store, files } = createRunnerHarness({
    store: harness.store,
    now: harness.clock.now,
    concurrency: 0,
    retentionS: day,
  });
  const folder = await files.openWorkFolder(ended[0]?.id ?? "");
  await files.saveResult(ended[0]?.id ?? "", await write(folder));
  runner.start();
  await vi.waitUntil(async () => (await store.list({ limit: 200 })).tasks.length === 2, 60_000);
  await vi.waitUntil(() => files.results().length === 0, 60_000);
  const { tasks } = await store.list({ limit: 200 });
  expect(tasks.map(({ id }) => id)).toEqual([young.id, unfinished.id]);
});

test("a list is read again where its tasks expire, not all of it in each pass", async () => {
  const clock = createTestClock();
  const harness = await openStoreHarness(() => createMemoryStore(clock));
  await Promise.all(times(160, () => moveTo(harness, "failed")));
  let passes = 0;
  let laterPages = 0;
  const store: TaskStore = {
    ...harness.store,
    list(query) {
      if (query.state === "canceled") passes += 1;
      if (query.before !== undefined) laterPages += 1;
      return harness.store.list(query);
    },
  };
  const { runner } = createRunnerHarness({ ...clock, store, concurrency: 0, retentionS: 1 });
  runner.start();
  await vi.waitUntil(() => passes === 1, 60_000);
  const read = laterPages;
  expect(read).toBeGreaterThanOrEqual(3);
  await vi.waitUntil(() => passes === 3, 60_000);
  expect(laterPages).toBe(read);
  clock.advance(1001);
  await vi.waitUntil(async () => (await harness.store.list({ limit: 1 })).tasks.length === 0, 60_000);
});

test("a task is deleted when its time has come, while the service runs", async () => {
  const clock = createTestClock();
  const { store, files, run } = createRunnerHarness({ now: clock.now, retentionS: 1 });
  const { id } = await run("succeeded");
  expect(files.results()).toEqual([id]);
  clock.advance(1001);
  await vi.waitUntil(async () => (await store.get(id)) === undefined, 60_000);
  await vi.waitUntil(() => files.results().length === 0, 60_000);
});

test.each([
  ["forward", 2 * day],
  ["back", -2 * day],
])("a clock set two days %s deletes nothing before its time", async (_way, jumpS) => {
  const clock = createTestClock();
  const inner = createMemoryStore(clock);
  let lists = 0;
  const store: TaskStore = {
    ...inner,
    list(query) {
      lists += 1;
      return inner.list(query);
    },
  };
  const { runner, add, until } = createRunnerHarness({ ...clock, store, retentionS: 1 });
  runner.start();
  const early = await add();
  await until(early.id, "succeeded");
  clock.jump(jumpS * 1000);
  const late = await add();
  await until(late.id, "succeeded");
  clock.advance(999);
  // Two whole passes through three states.
  const seen = lists;
  await vi.waitUntil(() => lists > seen + 6, 60_000);
  expect(await store.get(early.id)).toBeDefined();
  expect(await store.get(late.id)).toBeDefined();
});

test("without a retention nothing is deleted, however old", async () => {
  const harness = await openStoreHarness(({ now }) => createMemoryStore({ now }));
  const { id } = await moveTo(harness, "succeeded");
  harness.clock.advance(1000 * day * 1000);
  const { runner, store, add, until } = createRunnerHarness({
    store: harness.store,
    now: harness.clock.now,
  });
  runner.start();
  await until((await add()).id, "succeeded");
  expect(await store.get(id)).toBeDefined();
});

test("a task whose file cannot be removed stays until it can, is logged once, and does not block others", async () => {
  const clock = createTestClock();
  const inner = createTestFiles();
  const failing = new Set<string>();
  let failures = 0;
  const files = {
    ...inner,
    async remove(id: string) {
      if (failing.has(id)) {
        failures += 1;
        throw new ServiceError("unavailable", "file system error EIO");
      }
      return inner.remove(id);
    },
  };
  const { runner, store, log, add, until } = createRunnerHarness({
    now: clock.now,
    retentionS: 1,
    files,
  });
  const [bad, good] = [await add(), await add()];
  failing.add(bad.id);
  runner.start();
  for (const { id } of [bad, good]) await until(id, "succeeded");
  clock.advance(1001);
  await vi.waitUntil(async () => (await store.get(good.id)) === undefined, 60_000);
  await vi.waitUntil(() => failures >= 3, 60_000);
  expect(log.filter(({ task, code }) => task === bad.id && code === "unavailable")).toHaveLength(1);
  expect(inner.results()).toEqual([bad.id]);
  failing.clear();
  await vi.waitUntil(async () => (await store.get(bad.id)) === undefined, 60_000);
  expect(inner.results()).toEqual([]);
});

test("while a store takes no writes, the files of tasks past their retention stay", async () => {
  const clock = createTestClock();
  const inner = createMemoryStore(clock);
  let isReadOnly = false;
  const unlessReadOnly = <T>(work: () => Promise<T>) =>
    isReadOnly ? Promise.reject(new ServiceError("unavailable", "it is read-only")) : work();
  const store: TaskStore = {
    ...inner,
    update: (...change) => unlessReadOnly(() => inner.update(...change)),
    delete: (id) => unlessReadOnly(() => inner.delete(id)),
  };
  const { runner, files, log, add, until } = createRunnerHarness({ ...clock, store, retentionS: 1 });
  runner.start();
  const { id } = await add();
  await until(id, "succeeded");
  isReadOnly = true;
  clock.advance(1001);
  await vi.waitUntil(() => log.some(({ msg }) => msg === "tasks past their retention cannot be deleted"), 60_000);
  expect(files.results()).toEqual([id]);
  isReadOnly = false;
  await vi.waitUntil(async () => (await store.get(id)) === undefined, 60_000);
  expect(files.results()).toEqual([]);
});

test("a stop does not wait until the files of all members of a collection are removed", async () => {
  const clock = createTestClock();
  const harness = await openStoreHarness(() => createMemoryStore(clock));
  const inner = harness.store;
  const members = times(500, () => randomUUIDv7());
  const store: TaskStore = {
    ...inner,
    async list(query) {
      const page = await inner.list(query);
      return { ...page, tasks: page.tasks.map((task) => ({ ...task, kind: "collection" as const })) };
    },
    ownMembers: async () => members,
  };
  const files = createTestFiles();
  const removed: string[] = [];
  const { promise: removing, resolve: onRemoving } = Promise.withResolvers<void>();
  const watched = {
    ...files,
    async remove(id: string) {
      removed.push(id);
      onRemoving();
      await files.remove(id);
    },
  };
  const { runner } = createRunnerHarness({ ...clock, store, files: watched, concurrency: 0, retentionS: 1 });
  const { id } = await moveTo(harness, "failed");
  clock.advance(1001);
  runner.start();
  await removing;
  await runner.stop();
  expect(removed.length).toBeLessThan(members.length);
  expect(await inner.get(id)).toBeDefined();
});

test("several services may delete expired tasks at the same time", async () => {
  const harness = await openStoreHarness(({ now }) => createMemoryStore({ now }));
  const { store, clock } = harness;
  for (const state of times(60, (n) => (["succeeded", "failed"] as const)[n % 2]!)) {
    await moveTo(harness, state);
  }
  clock.advance(2000);
  const harnesses = times(3, () => createRunnerHarness({ store, now: clock.now, concurrency: 0, retentionS: 1 }));
  for (const { runner } of harnesses) runner.start();
  await vi.waitUntil(async () => (await store.list({ limit: 1 })).tasks.length === 0, 60_000);
  for (const { runner } of harnesses) await runner.stop();
  expect(harnesses.flatMap(({ log }) => log)).toEqual([]);
});

test("a list that cannot be read is logged and read again", async () => {
  const clock = createTestClock();
  const inner = createMemoryStore({ now: clock.now });
  let failures = 1;
  const { runner, store, log, add } = createRunnerHarness({
    now: clock.now,
    concurrency: 0,
    retentionS: 1,
    store: {
      ...inner,
      async list(query) {
        failures -= 1;
        if (failures === 0) throw new ServiceError("unavailable", "disk I/O error");
        return inner.list(query);
      },
    },
  });
  const { id } = await add();
  await store.update(id, { state: "canceled" });
  clock.advance(2000);
  runner.start();
  await vi.waitUntil(async () => (await store.get(id)) === undefined, 60_000);
  await vi.waitUntil(() => log.length > 1, 60_000);
  expect(log).toMatchObject([
    { code: "unavailable", msg: "tasks past their retention cannot be deleted" },
    { msg: "tasks past their retention can be deleted again" },
  ]);
});

test("the start removes parts of ended and deleted tasks, removed results, and no file that may be of another store's task", async () => {
  const harness = await openStoreHarness(({ now }) => createMemoryStore({ now }));
  const error = { code: "upstream_timeout", message: "slow", retryable: true };
  const made = {
    succeeded: await addFile(harness, 10),
    removed: await addFile(harness, 10),
    canceled: await moveTo(harness, "canceled"),
    failed: await moveTo(harness, "failed"),
    failedForNow: await moveTo(harness, "failed"),
    failedWithResult: await moveTo(harness, "failed"),
    running: await moveTo(harness, "running"),
    unknown: newTask("https://gone.test/", {}, harness.clock.now()),
    abandoned: newTask("https://gone.test/", {}, harness.clock.now()),
  };
  for (const { id } of [made.failedForNow, made.failedWithResult]) {
    await harness.store.update(id, { error });
  }
  // A kill came between the record and the file.
  await harness.store.update(made.removed.id, { file: null }, { hasFile: true });
  const { runner, files, log } = createRunnerHarness({ store: harness.store, concurrency: 0 });
  for (const { id } of [made.succeeded, made.removed, made.unknown, made.failedWithResult]) {
    await files.saveResult(id, await write(await files.openWorkFolder(id)));
  }
  for (const { id } of Object.values(made)) await write(await files.openWorkFolder(id));
  const folder = await files.openWorkFolder(made.abandoned.id);
  const lastWeek = new Date(Date.now() - oldMs);
  for (const path of [join(folder, "medium"), folder]) utimesSync(path, lastWeek, lastWeek);
  runner.start();
  const kept = [made.failedForNow.id, made.running.id, made.unknown.id].toSorted();
  await vi.waitFor(() => expect(files.parts()).toEqual(kept), 60_000);
  const results = [made.succeeded.id, made.unknown.id].toSorted();
  await vi.waitFor(() => expect(files.results()).toEqual(results), 60_000);
  const msg = "orphaned files: no such task in this store";
  await vi.waitFor(() => expect(log).toContainEqual({ level: "warn", files: 1, msg }), 60_000);
});

test("a service with another store on the same disk leaves the downloads of the first alone", async () => {
  const first = createRunnerHarness({ downloads: neverEnd });
  const { id } = await first.add();
  first.runner.start();
  await first.untilLoading(id);
  const second = createRunnerHarness({ files: first.files });
  second.runner.start();
  const msg = "orphaned files: no such task in this store";
  await vi.waitUntil(() => second.log.some((line) => line["msg"] === msg), 60_000);
  await second.runner.stop();
  expect(first.files.parts()).toEqual([id]);
});

async function write(folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "medium");
  writeFileSync(path, "medium");
  return path;
}
