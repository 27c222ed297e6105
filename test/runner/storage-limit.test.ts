import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { createMemoryStore, openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import type { Task } from "../../src/model/task.ts";
import { createTestClock } from "../contracts/task-store/harness.ts";
import { openDatabase } from "../postgres/database.ts";
import { makeFolder } from "../folder.ts";
import { writeMedium } from "./engine.ts";
import { createTestFiles } from "./files.ts";
import { createRunnerHarness, type RunnerHarness } from "./harness.ts";

/** The test engine writes a page's URL as its file: 100 bytes. */
const pageOf = (n: number) => `https://video-${n % 9}.example.com/`.padEnd(97, "x") + `${100 + n}`;

const stores: Record<string, () => TaskStore | Promise<TaskStore>> = {
  memory: () => createMemoryStore(),
  SQLite: () => openSqliteStore({ path: join(makeFolder(), "tasks.db") }),
  Postgres: async () => openPostgresStore({ url: await openDatabase() }),
};

describe.each(Object.entries(stores))("with a limit for all files, tasks in %s:", (_name, open) => {
  test("after each task that succeeds the files are within it; the oldest went first", async () => {
    const harness = createRunnerHarness({ store: await open(), maxStoredBytes: 550 });
    const { runner, add, files, log } = harness;
    const most = watchBytes(harness);
    const tasks = [];
    for (let n = 0; n < 20; n += 1) tasks.push(await add(pageOf(n)));
    runner.start();
    await untilEnded(harness, tasks);
    expect(most()).toBe(500);
    const ended = await readAll(harness, tasks);
    expect(ended.map(({ state }) => state)).toEqual(tasks.map(() => "succeeded"));
    const byFinish = ended.toSorted((a, b) => (a.finished_at! < b.finished_at! ? -1 : 1));
    const kept = byFinish.filter(({ file }) => file !== null);
    expect(kept).toHaveLength(5);
    expect(byFinish.at(-1)?.file).not.toBeNull();
    // Those that finished in the same millisecond have the order of their creation.
    const newestRemoved = byFinish.findLast(({ file }) => file === null)!.finished_at!;
    expect(kept.filter(({ finished_at }) => finished_at! < newestRemoved)).toEqual([]);
    expect(files.results()).toEqual(kept.map(({ id }) => id).toSorted());
    for (const { file, removed_at } of ended) expect(removed_at === null).toBe(file !== null);
    const lines = log.filter(({ msg }) => String(msg).startsWith("removed the oldest files"));
    expect(lines.reduce((sum, line) => sum + Number(line["files"]), 0)).toBe(15);
    expect(lines.reduce((sum, line) => sum + Number(line["bytes"]), 0)).toBe(1500);
  });

  test("several processes keep it together, remove no more than is needed, and none fails", async () => {
    const store = await open();
    const first = createRunnerHarness({ store, maxStoredBytes: 550 });
    const others = [1, 2].map(() => createRunnerHarness({ store, files: first.files, maxStoredBytes: 550 }));
    const most = watchBytes(first);
    const tasks = [];
    for (let n = 0; n < 30; n += 1) tasks.push(await first.add(pageOf(n)));
    for (const { runner } of [first, ...others]) runner.start();
    await untilEnded(first, tasks);
    expect(most()).toBe(500);
    const ended = await readAll(first, tasks);
    expect(ended.filter(({ file }) => file !== null)).toHaveLength(5);
    expect(first.files.results()).toHaveLength(5);
    const removals = first.changes.filter(({ removed_at }) => removed_at !== null);
    expect(new Set(removals.map(({ id }) => id)).size).toBe(removals.length);
    const logs = [first, ...others].flatMap(({ log }) => log);
    expect(logs.filter(({ err, reason }) => err !== undefined || reason !== undefined)).toEqual([]);
    await Promise.all([first, ...others].map(({ runner }) => runner.stop()));
  });
});

test("a limit that was lowered is kept from the start on", async () => {
  const { store, tasks, files } = await fill(6);
  const { runner } = createRunnerHarness({ store, files, maxStoredBytes: 250 });
  runner.start();
  await vi.waitUntil(() => files.results().length === 2, 60_000);
  await vi.waitUntil(async () => (await store.storedFiles({ limit: 1 })).bytes === 200, 60_000);
  const removed = await Promise.all(tasks.slice(0, 4).map(({ id }) => store.get(id)));
  for (const task of removed) expect(task).toMatchObject({ state: "succeeded", file: null });
});

test("without a limit nothing is removed", async () => {
  const { store, tasks, files } = await fill(6);
  const { runner, add, until } = createRunnerHarness({ store, files });
  runner.start();
  await until((await add(pageOf(7))).id, "succeeded");
  expect(files.results()).toHaveLength(tasks.length + 1);
});

test("a file that is gone while its record is not, as after a crash in between, is made good", async () => {
  const { store, tasks, files } = await fill(3);
  await files.remove(tasks[0]!.id);
  const { runner, log } = createRunnerHarness({ store, files, maxStoredBytes: 200 });
  runner.start();
  await vi.waitUntil(async () => (await store.get(tasks[0]!.id))?.removed_at != null, 60_000);
  expect((await store.storedFiles({ limit: 9 })).oldest).toHaveLength(2);
  await vi.waitUntil(() => log.some(({ files: count }) => count === 1), 60_000);
  expect(log.filter(({ err, code }) => err !== undefined || code !== undefined)).toEqual([]);
});

test("a file in use is left, the next one goes; it goes when it is not in use any more", async () => {
  const { store, tasks, files } = await fill(2);
  const [served, next] = tasks;
  const opened = (await files.open(served!.id))!;
  onTestFinished(() => opened.handle.close());
  await opened.markInUse();
  const { runner, add, until, log } = createRunnerHarness({ store, files, maxStoredBytes: 250 });
  runner.start();
  const one = await add(pageOf(3));
  await until(one.id, "succeeded");
  expect(await store.get(next!.id)).toMatchObject({ file: null });
  expect(await store.get(served!.id)).toMatchObject({ removed_at: null, file: { size: 100 } });
  expect(files.results()).toEqual([served!.id, one.id].toSorted());
  await opened.handle.utimes(new Date(0), new Date());
  const two = await add(pageOf(4));
  await until(two.id, "succeeded");
  expect(files.results()).toEqual([one.id, two.id].toSorted());
  expect(log.filter(({ msg }) => String(msg).startsWith("MAX_STORED_BYTES is exceeded"))).toEqual([]);
});

test("if all others are in use, a task succeeds over the limit, which a line says once; soon after they are removed", async () => {
  const { store, tasks, files } = await fill(2);
  const opened = await Promise.all(tasks.map(({ id }) => files.open(id)));
  onTestFinished(async () => {
    for (const each of opened) await each!.handle.close();
  });
  for (const each of opened) await each!.markInUse();
  const { runner, add, until, log } = createRunnerHarness({
    store,
    files,
    maxStoredBytes: 250,
    concurrency: 1,
  });
  runner.start();
  const one = await add(pageOf(3));
  await until(one.id, "succeeded");
  expect(files.results()).toHaveLength(3);
  expect(await store.get(one.id)).toMatchObject({ file: { size: 100 } });
  for (const each of opened) await each!.handle.utimes(new Date(0), new Date());
  await vi.waitUntil(() => files.results().length === 2, 60_000);
  expect(files.results()).toEqual([tasks[1]!.id, one.id].toSorted());
  const said = log.filter(({ msg }) => String(msg).startsWith("MAX_STORED_BYTES is exceeded"));
  expect(said).toMatchObject([{ bytes: 50, maxBytes: 250 }]);
});

test("a file that cannot be removed is logged once, keeps no other from being removed, and is removed later", async () => {
  const { store, tasks, files } = await fill(2);
  const [bad] = tasks;
  let isFailing = true;
  const failing = {
    ...files,
    async remove(id: string) {
      if (isFailing && id === bad!.id) throw new ServiceError("unavailable", "EIO");
      await files.remove(id);
    },
  };
  const { runner, add, until, log } = createRunnerHarness({
    store,
    files: failing,
    maxStoredBytes: 250,
  });
  runner.start();
  for (const n of [3, 4]) await until((await add(pageOf(n))).id, "succeeded");
  expect(await store.get(bad!.id)).toMatchObject({ file: null });
  expect((await store.storedFiles({ limit: 1 })).bytes).toBe(200);
  expect(files.results()).toContain(bad!.id);
  expect(log.filter(({ code }) => code !== undefined)).toMatchObject([{ task: bad!.id }]);
  isFailing = false;
  await until((await add(pageOf(5))).id, "succeeded");
  expect(files.results()).toHaveLength(2);
  expect(files.results()).not.toContain(bad!.id);
});

test("a file is removed only once its record says so, and stays while the store takes no writes", async () => {
  const { store: inner, tasks, files } = await fill(2);
  let isReadOnly = true;
  const store: TaskStore = {
    ...inner,
    update: async (...change) => {
      if (isReadOnly) throw new ServiceError("unavailable", "it is read-only");
      return inner.update(...change);
    },
  };
  const removed: (Task | undefined)[] = [];
  const watched = {
    ...files,
    async remove(id: string) {
      removed.push(await inner.get(id));
      await files.remove(id);
    },
  };
  const { runner, log } = createRunnerHarness({ store, files: watched, maxStoredBytes: 150 });
  runner.start();
  await vi.waitUntil(() => log.some(({ msg }) => msg === "files over MAX_STORED_BYTES cannot be removed"), 60_000);
  expect(files.results()).toHaveLength(2);
  isReadOnly = false;
  await vi.waitUntil(() => files.results().length === 1, 60_000);
  expect(removed).toMatchObject([{ id: tasks[0]!.id, state: "succeeded", file: null }]);
});

test.each([
  [{ maxFileBytes: 1000, maxStoredBytes: 99 }, 99, "MAX_STORED_BYTES"],
  [{ maxFileBytes: 99, maxStoredBytes: 1000 }, 99, "MAX_FILE_BYTES"],
  [{ maxFileBytes: 99, maxStoredBytes: 0 }, 99, "MAX_FILE_BYTES"],
])("a file over the limit alone fails: %o", async (limits, most, setting) => {
  const { store, tasks, files } = await fill(0);
  const { runner, add, until } = createRunnerHarness({
    ...limits,
    store,
    files,
    async downloads(job) {
      const { size, ...medium } = await writeMedium(job);
      if (size <= job.maxBytes) return { size, ...medium };
      throw new ServiceError("too_large", `it has ${size} bytes, the limit is ${job.maxBytes}`);
    },
  });
  runner.start();
  const { error } = await until((await add(pageOf(1))).id, "failed");
  const message = `it has 100 bytes, the limit is ${most} (${setting})`;
  expect(error).toEqual({ code: "too_large", message, retryable: false });
  expect(tasks).toEqual([]);
});

test("a file in use is not deleted with a task past its retention, until it is not in use", async () => {
  const { store, tasks, files } = await fill(2);
  const opened = (await files.open(tasks[0]!.id))!;
  onTestFinished(() => opened.handle.close());
  await opened.markInUse();
  const clock = createTestClock(Date.now());
  const { runner } = createRunnerHarness({ store, files, retentionS: 1, ...clock });
  clock.advance(1_001);
  runner.start();
  await vi.waitUntil(async () => (await store.list({ limit: 9 })).tasks.length === 1, 60_000);
  expect(files.results()).toEqual([tasks[0]!.id]);
  await opened.handle.utimes(new Date(0), new Date());
  await vi.waitUntil(async () => (await store.list({ limit: 9 })).tasks.length === 0, 60_000);
  expect(files.results()).toEqual([]);
});

/** A store and files with so many tasks that have succeeded, one after the other. */
async function fill(count: number) {
  const store = createMemoryStore();
  const files = createTestFiles();
  const harness = createRunnerHarness({ store, files, concurrency: 1 });
  harness.runner.start();
  const tasks: Task[] = [];
  for (let n = 0; n < count; n += 1) {
    const { id } = await harness.add(pageOf(n));
    tasks.push(await harness.until(id, "succeeded"));
  }
  await harness.runner.stop();
  return { store, files, tasks };
}

/** Returns the most bytes that the tasks' files have had together after any change of a task since now. */
function watchBytes({ store }: RunnerHarness): () => number {
  const sizes = new Map<string, number>();
  let most = 0;
  store.events.subscribe(({ taskId, json }) => {
    sizes.set(taskId, (JSON.parse(json) as Task).file?.size ?? 0);
    most = Math.max(
      most,
      sizes.values().reduce((sum, size) => sum + size, 0),
    );
  });
  return () => most;
}

async function untilEnded({ until }: RunnerHarness, tasks: readonly Task[]): Promise<void> {
  await Promise.all(tasks.map(({ id }) => until(id, ({ finished_at }) => finished_at !== null)));
}

async function readAll({ store }: RunnerHarness, tasks: readonly Task[]): Promise<Task[]> {
  return Promise.all(tasks.map(async ({ id }) => (await store.get(id))!));
}
