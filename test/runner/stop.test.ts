import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { createMemoryStore, openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { makeFolder } from "../folder.ts";
import { neverEnd, writeMedium } from "./engine.ts";
import { createTestFiles } from "./files.ts";
import { createRunnerHarness } from "./harness.ts";
import { createTestResolver, pageOf } from "./resolver.ts";

test("stop requeues running tasks; the attempt does not count and the parts stay", async () => {
  const { runner, store, files, add, untilLoading } = createRunnerHarness({ downloads: neverEnd });
  const tasks = [await add(), await add(), await add()];
  runner.start();
  for (const { id } of tasks.slice(0, 2)) await untilLoading(id);
  await runner.stop();
  for (const { id } of tasks) {
    expect(await store.get(id)).toMatchObject({ state: "queued", attempts: 0, progress: null });
  }
  expect(new Set(files.parts())).toEqual(new Set([tasks[0]?.id, tasks[1]?.id]));
});

test("stop waits until every run has ended; then nothing is claimed", async () => {
  const gate = Promise.withResolvers<void>();
  let ended = false;
  const store = createMemoryStore();
  const claims = vi.spyOn(store, "claim");
  const { runner, add, startLoading } = createRunnerHarness({
    store,
    downloads: async (job, context) => {
      await neverEnd(job, context).catch(() => gate.promise);
      ended = true;
      throw context.signal.reason;
    },
  });
  await startLoading();
  const stops = [runner.stop(), runner.stop()];
  gate.resolve();
  await Promise.all(stops);
  expect(ended).toBe(true);
  expect(claims).toHaveBeenCalled();
  claims.mockClear();
  await add();
  runner.start();
  await runner.stop();
  expect(claims).not.toHaveBeenCalled();
});

test("a runner that is stopped before its start never claims", async () => {
  const store = createMemoryStore();
  const claims = vi.spyOn(store, "claim");
  const { runner, add } = createRunnerHarness({ store });
  await add();
  await runner.stop();
  runner.start();
  await add();
  await runner.stop();
  expect(claims).not.toHaveBeenCalled();
});

test("a task whose claim arrives after the stop is requeued, its attempt not counted", async () => {
  const inner = createMemoryStore();
  const [requested, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let downloads = 0;
  const { runner, store, add, states } = createRunnerHarness({
    store: {
      ...inner,
      async claim(query) {
        requested.resolve();
        await gate.promise;
        return inner.claim(query);
      },
    },
    downloads: async (job, context) => {
      downloads += 1;
      return neverEnd(job, context);
    },
  });
  const { id } = await add();
  runner.start();
  await requested.promise;
  const stopped = runner.stop();
  gate.resolve();
  await stopped;
  expect(states(id)).toEqual(["queued", "running", "queued"]);
  expect(await store.get(id)).toMatchObject({ state: "queued", attempts: 0 });
  expect(downloads).toBe(0);
});

test("a run whose result is being saved at the stop succeeds", async () => {
  const files = createTestFiles();
  const harness = createRunnerHarness({
    files: {
      ...files,
      async saveResult(id, path) {
        void harness.runner.stop();
        await files.saveResult(id, path);
      },
    },
  });
  const { id } = await harness.run("succeeded");
  await harness.runner.stop();
  expect(await harness.store.get(id)).toMatchObject({ state: "succeeded", attempts: 1 });
  expect(files.results()).toEqual([id]);
});

test("a requeued task is resumed by the next service, with the parts it had", async () => {
  const path = join(makeFolder(), "tasks.db");
  const before = createRunnerHarness({ store: openSqliteStore({ path }), downloads: neverEnd });
  const { id } = await before.add();
  before.runner.start();
  await before.untilLoading(id);
  await before.runner.stop();
  await before.store.close();

  const partsAtStart: string[][] = [];
  const { runner, until, store } = createRunnerHarness({
    store: openSqliteStore({ path }),
    files: before.files,
    downloads: async (job) => {
      partsAtStart.push(readdirSync(job.folder));
      return writeMedium(job);
    },
  });
  runner.start();
  expect(await until(id, "succeeded")).toMatchObject({ attempts: 1 });
  expect(partsAtStart).toEqual([["part"]]);
  await store.close();
});

// One time more than the deaths after which a task counts as poison.
test("a task whose page was being read at each of six stops is read by the next service", async () => {
  const path = join(makeFolder(), "tasks.db");
  let reads = 0;
  const resolver = createTestResolver(async (url, signal) => {
    reads += 1;
    if (reads <= 6) await once(signal, "abort");
    signal.throwIfAborted();
    return pageOf(url);
  });
  let id = "";
  for (let stops = 0; stops < 6; stops += 1) {
    const { runner, store, add } = createRunnerHarness({ store: openSqliteStore({ path }), resolver });
    if (stops === 0) ({ id } = await add());
    runner.start();
    await vi.waitUntil(() => reads > stops, 60_000);
    await runner.stop();
    await store.close();
  }
  const last = createRunnerHarness({ store: openSqliteStore({ path }), resolver });
  last.runner.start();
  expect(await last.until(id, "succeeded")).toMatchObject({ attempts: 1 });
});
