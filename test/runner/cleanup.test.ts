import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { newTask } from "../../src/feed/task-changes.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { createTestFiles } from "./files.ts";
import { createRunnerHarness } from "./harness.ts";

/** Cancels 50 tasks at once; those of which a run has left something have a work folder. Returns which of them the store was asked for. */
async function cancelMany(hasFiles: (index: number) => boolean) {
  const inner = createMemoryStore();
  const reads: string[] = [];
  let [pending, most] = [0, 0];
  const store: TaskStore = {
    ...inner,
    async get(id) {
      reads.push(id);
      pending += 1;
      most = Math.max(most, pending);
      try {
        await new Promise(setImmediate);
        return await inner.get(id);
      } finally {
        pending -= 1;
      }
    },
  };
  const { runner, files, add } = createRunnerHarness({ store, concurrency: 0 });
  const ids: string[] = [];
  for (let n = 0; n < 50; n += 1) ids.push((await add()).id);
  runner.start();
  for (const [n, id] of ids.entries()) {
    if (hasFiles(n)) writeFileSync(join(await files.openWorkFolder(id), "part"), "x");
  }
  await Promise.all(ids.map((id) => store.update(id, { state: "canceled" })));
  await runner.stop();
  return { ids, reads: new Set(reads), most, left: files.parts() };
}

describe("when it starts, the runner", () => {
  it("removes files that are said to be removed, as a request that was interrupted has left them", async () => {
    const { runner, store, files, run } = createRunnerHarness();
    const { id } = await run("succeeded");
    await runner.stop();
    await store.update(id, { file: null });
    expect(await files.ids()).toContain(id);
    const next = createRunnerHarness({ store, files });
    next.runner.start();
    await vi.waitUntil(async () => !(await files.ids()).includes(id), 60_000);
    expect(await store.get(id)).toMatchObject({ state: "succeeded", file: null });
  });

  it("removes what tasks have left, though there are links in the place of the files of others", async () => {
    const files = createTestFiles();
    const { runner, store, add } = createRunnerHarness({ files, concurrency: 0 });
    const { id } = await add();
    await files.openWorkFolder(id);
    await store.update(id, { state: "canceled" });
    const unknown = ["00000000", "ffffffff"].map((start) => `${start}-0000-4000-8000-000000000000`);
    for (const name of unknown) symlinkSync("none", files.resultPath(name));
    runner.start();
    await vi.waitUntil(() => files.parts().length === 0, 60_000);
    expect(files.results()).toEqual(unknown);
  });
});

describe("when many tasks are canceled at once, the runner", () => {
  it("asks the store for none that has no files", async () => {
    expect((await cancelMany(() => false)).reads).toEqual(new Set());
  });

  it("removes what runs have left, and asks the store for one task after the other", async () => {
    const { ids, reads, most, left } = await cancelMany((n) => n % 2 === 0);
    expect(left).toEqual([]);
    expect(reads).toEqual(new Set(ids.filter((_, n) => n % 2 === 0)));
    expect(most).toBe(1);
  });
});

it("what is removed of an owner's tasks does not wait for that of another owner", async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const inner = createMemoryStore();
  const store: TaskStore = {
    ...inner,
    async get(id) {
      const task = await inner.get(id);
      if (task?.owner === "eve") await gate;
      return task;
    },
  };
  const { runner, files } = createRunnerHarness({ store, concurrency: 0 });
  const add = async (owner: string) => (await store.create(newTask("https://example.com/", {}, new Date(), owner))).id;
  const [of, other] = [await add("eve"), await add("bob")];
  for (const id of [of, other]) await files.openWorkFolder(id);
  runner.start();
  for (const id of [of, other]) await store.update(id, { state: "canceled" });
  await vi.waitUntil(() => !files.parts().includes(other), 60_000);
  expect(files.parts()).toEqual([of]);
  open();
});

describe("while the store is out of reach, the runner", () => {
  /** Creates a runner whose store can be read while `isUp`. */
  function createOutage() {
    const inner = createMemoryStore();
    const state = { isUp: true };
    let refused = 0;
    const store: TaskStore = {
      ...inner,
      async get(id) {
        if (state.isUp) return inner.get(id);
        refused += 1;
        throw new ServiceError("unavailable", "the database is restarting");
      },
    };
    return { state, tries: () => refused, ...createRunnerHarness({ store, concurrency: 0, retryMs: 10 }) };
  }

  it("leaves the files of a task that is canceled, says so once however often it tries, and removes them later", async () => {
    const { state, tries, runner, store, files, log, add } = createOutage();
    const [{ id }, earlier] = [await add(), await add()];
    await store.update(earlier.id, { state: "canceled" });
    await files.openWorkFolder(earlier.id);
    runner.start();
    await vi.waitUntil(() => files.parts().length === 0, 60_000);
    await files.openWorkFolder(id);
    state.isUp = false;
    await store.update(id, { state: "canceled" });
    await vi.waitUntil(() => tries() > 3, 60_000);
    expect(files.parts()).toEqual([id]);
    state.isUp = true;
    await vi.waitUntil(() => files.parts().length === 0, 60_000);
    expect(log).toMatchObject([{ task: id, code: "unavailable" }]);
  });

  it("looks for what was left before its start again once it is not", async () => {
    const { state, runner, store, files, log, add } = createOutage();
    const { id } = await add();
    await store.update(id, { state: "canceled" });
    await files.openWorkFolder(id);
    state.isUp = false;
    runner.start();
    await vi.waitUntil(() => log.length === 1, 60_000);
    state.isUp = true;
    await vi.waitUntil(() => files.parts().length === 0, 60_000);
    await vi.waitUntil(() => log.length === 2, 60_000);
    expect(log).toMatchObject([{ level: "error", code: "unavailable" }, { level: "info" }]);
  });
});
