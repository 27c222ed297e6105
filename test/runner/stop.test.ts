import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqliteStore } from "../../src/stores/sqlite.ts";
import { makeFolder } from "../stores/folder.ts";
import { neverEnd } from "./engine.ts";
import { createTestFiles } from "./files.ts";
import { createRunnerHarness } from "./harness.ts";

test("stop puts running tasks back, the attempt not counted and the parts kept", async () => {
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

test("stop waits until everything has ended; after it nothing is claimed", async () => {
  const gate = Promise.withResolvers<void>();
  let ended = false;
  const { runner, store, add, untilLoading } = createRunnerHarness({
    downloads: async (job, context) => {
      await neverEnd(job, context).catch(() => gate.promise);
      ended = true;
      throw context.signal.reason;
    },
  });
  const { id } = await add();
  runner.start();
  await untilLoading(id);
  const stops = [runner.stop(), runner.stop()];
  gate.resolve();
  await Promise.all(stops);
  expect(ended).toBe(true);
  const late = await add();
  runner.start();
  await runner.stop();
  expect(await store.get(late.id)).toMatchObject({ state: "queued", attempts: 0 });
});

test("a runner that was never started can be stopped", async () => {
  const { runner } = createRunnerHarness();
  await runner.stop();
});

test("a claim under way when the stop comes is put back as well", async () => {
  const { runner, store, add } = createRunnerHarness({ downloads: neverEnd });
  const { id } = await add();
  runner.start();
  await runner.stop();
  expect(await store.get(id)).toMatchObject({ state: "queued", attempts: 0 });
});

test("a result that is being kept when the stop comes ends its task", async () => {
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
  const { id } = await harness.add();
  harness.runner.start();
  await harness.until(id, "succeeded");
  await harness.runner.stop();
  expect(files.results()).toEqual([id]);
  files.destroy();
});

test("a task put back goes on with the next service, from the parts it had", async () => {
  const path = join(makeFolder(), "tasks.db");
  const before = createRunnerHarness({ store: openSqliteStore({ path }), downloads: neverEnd });
  const { id } = await before.add();
  before.runner.start();
  await before.untilLoading(id);
  await before.runner.stop();
  await before.store.close();

  const { runner, until, store } = createRunnerHarness({
    store: openSqliteStore({ path }),
    files: before.files,
  });
  runner.start();
  expect(await until(id, "succeeded")).toMatchObject({ attempts: 1 });
  await store.close();
});
