import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { ServiceError } from "../../src/errors.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { neverEnd, writeMedium } from "./engine.ts";
import { type RunnerHarness, createRunnerHarness } from "./harness.ts";

/** What other processes do to the tasks of a store reaches a runner late, or not at all. */

const away = new ServiceError("unavailable", "the task store does not answer");

describe("a run that cannot reach the store", () => {
  test.each([
    ["answers none", () => new Promise<never>(() => {})],
    ["refuses all", () => Promise.reject(away)],
  ])(
    "ends while it surely holds its task, where the store %s of its heartbeats",
    async (_way, fail) => {
      const leaseMs = 2_000;
      let sentMs = 0;
      const inner = createMemoryStore();
      const heartbeat: TaskStore["heartbeat"] = (...call) => {
        if (sentMs > 0) return fail();
        sentMs = performance.now();
        return inner.heartbeat(...call);
      };
      const ended = Promise.withResolvers<number>();
      const { runner, add } = createRunnerHarness({
        store: { ...inner, heartbeat },
        leaseMs,
        downloads: (job, context) =>
          neverEnd(job, context).finally(() => ended.resolve(performance.now())),
      });
      await add();
      runner.start();
      const heldMs = (await ended.promise) - sentMs;
      expect(heldMs).toBeGreaterThan(leaseMs / 2);
      expect(heldMs).toBeLessThan(leaseMs);
    },
  );

  test("puts its task back where it can after all, no attempt and no death counted", async () => {
    const inner = createMemoryStore();
    const { runner, add, until, log, states } = createRunnerHarness({
      store: { ...inner, heartbeat: () => Promise.reject(away) },
      leaseMs: 100,
      downloads: (job, context, count) => (count === 1 ? neverEnd(job, context) : writeMedium(job)),
    });
    const { id } = await add();
    runner.start();
    expect(await until(id, "succeeded")).toMatchObject({ attempts: 1 });
    expect(states(id)).toEqual(["queued", "running", "queued", "running", "succeeded"]);
    const reason = "the lease expired while the store was unreachable";
    expect(log).toContainEqual(
      expect.objectContaining({ task: id, msg: "run interrupted; task requeued", reason }),
    );
    const starts = log.filter(({ msg }) => msg === "run started");
    expect(starts).toMatchObject([{ stalledCount: 0 }, { stalledCount: 0 }]);
  });

  test("has its lease from when it was asked for, however late the answer came", async () => {
    const inner = createMemoryStore();
    let downloads = 0;
    const { runner, add, until, log } = createRunnerHarness({
      leaseMs: 100,
      store: {
        ...inner,
        async claim(query) {
          const claim = await inner.claim(query);
          if (claim !== undefined && log.length === 0) await sleep(100);
          return claim;
        },
      },
      downloads: async (job) => {
        downloads += 1;
        return writeMedium(job);
      },
    });
    const { id } = await add();
    runner.start();
    await until(id, "succeeded");
    expect(log[1]).toMatchObject({ msg: expect.stringMatching(/^run (put back|ended)/) });
    expect(downloads).toBe(1);
  });
});

describe("a task that another process cancels or deletes", () => {
  const ways: [string, (store: TaskStore, id: string) => Promise<unknown>][] = [
    ["canceled", (store, id) => store.update(id, { state: "canceled" })],
    ["deleted", (store, id) => store.delete(id)],
  ];

  test.each(ways)("is no longer run once it is %s, without any news of it", async (_way, end) => {
    const inner = createMemoryStore();
    const aborted = Promise.withResolvers<unknown>();
    const { runner, add, untilLoading, log } = createRunnerHarness({
      store: inner,
      leaseMs: 300,
      downloads: (job, context) => neverEnd(job, context).finally(() => aborted.resolve(undefined)),
    });
    const { id } = await add();
    runner.start();
    await untilLoading(id);
    await end(inner, id);
    await aborted.promise;
    await vi.waitUntil(() => log.length === 2);
    expect(log[1]).toMatchObject({ msg: expect.stringContaining("canceled, deleted or claimed") });
  });

  test.each(ways)("between its claim and its run, is %s: it leaves nothing", async (_way, end) => {
    const inner = createMemoryStore();
    const store: TaskStore = {
      ...inner,
      async claim(query) {
        const claim = await inner.claim(query);
        if (claim === undefined) return undefined;
        await end(inner, claim.task.id);
        await tell(scene, claim.task.id);
        await new Promise((resolve) => setImmediate(resolve));
        return claim;
      },
    };
    const scene: RunnerHarness = createRunnerHarness({
      store,
      leaseMs: 600_000,
      downloads: neverEnd,
    });
    await scene.add();
    scene.runner.start();
    await vi.waitUntil(() => scene.log.length === 2);
    await scene.runner.stop();
    expect([scene.log[1]?.["msg"], scene.files.parts()]).toEqual([
      "run ended: the task was canceled, deleted or claimed elsewhere",
      [],
    ]);
  });

  async function tell({ events }: RunnerHarness, id: string): Promise<void> {
    events.publish({ type: "deleted", task: { id } });
  }
});

test("a run that fails when its task is another's already leaves the files to that one", async () => {
  const inner = createMemoryStore();
  const { runner, files, add, log } = createRunnerHarness({
    store: inner,
    concurrency: 1,
    downloads: async ({ folder }) => {
      await writeFile(join(folder, "part"), "begun");
      const [task] = (await inner.list({ limit: 1 })).tasks;
      for (const state of ["canceled", "queued"] as const) {
        await inner.update(task?.id ?? "", { state });
      }
      await inner.claim({ leaseMs: 600_000 });
      throw new ServiceError("no_media", "the answer is no medium");
    },
  });
  const { id } = await add();
  runner.start();
  await vi.waitUntil(() => log.length === 2);
  await runner.stop();
  expect(await inner.get(id)).toMatchObject({ state: "running", error: null });
  expect(files.parts()).toEqual([id]);
});

test("news that are older than a run do not end it", async () => {
  const gate = new AbortController();
  const { runner, events, files, add, until, untilLoading, states } = createRunnerHarness({
    downloads: async (job, context) => {
      context.onProgress({ stage: "downloading", downloaded_bytes: 5, total_bytes: 100 });
      await once(gate.signal, "abort");
      context.signal.throwIfAborted();
      return writeMedium(job);
    },
  });
  const task = await add();
  runner.start();
  await untilLoading(task.id);
  events.publish({ type: "task", task: { ...task, state: "canceled" } });
  await until(task.id, "canceled");
  await new Promise((resolve) => setImmediate(resolve));
  gate.abort();
  await until(task.id, "succeeded");
  await runner.stop();
  expect(states(task.id)).not.toContain("failed");
  expect(files.results()).toEqual([task.id]);
});
