import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { neverEnd, writeMedium } from "./engine.ts";
import { createTaskEvents, changeEvent } from "../../src/feed/task-events.ts";
import { createRunnerHarness, stopTime } from "./harness.ts";

/** Events of changes that other processes make may reach a runner late, or never. */

const unavailable = new ServiceError("unavailable", "the task store does not respond");

describe("a run that cannot reach the store", () => {
  test.each([
    ["responds to none", () => new Promise<never>(() => {})],
    ["refuses all", () => Promise.reject(unavailable)],
  ])("ends while its lease is certain to hold, if the store %s of its heartbeats", async (_way, fail) => {
    const leaseMs = 4_000;
    let sentMs = 0;
    const inner = createMemoryStore();
    const heartbeat: TaskStore["heartbeat"] = (...call) => {
      if (sentMs > 0) return fail();
      sentMs = performance.now();
      return inner.heartbeat(...call);
    };
    const ended = Promise.withResolvers<number>();
    const { startLoading } = createRunnerHarness({
      store: { ...inner, heartbeat },
      leaseMs,
      downloads: (job, context) => neverEnd(job, context).finally(() => ended.resolve(performance.now())),
    });
    stopTime();
    await startLoading();
    await vi.advanceTimersByTimeAsync(2 * leaseMs);
    const heldMs = (await ended.promise) - sentMs;
    expect(heldMs).toBeGreaterThan(leaseMs / 2);
    expect(heldMs).toBeLessThan(leaseMs);
  });

  test("requeues its task if it can after all, without counting an attempt or a dead worker", async () => {
    const inner = createMemoryStore();
    let isDown = true;
    const heartbeat: TaskStore["heartbeat"] = (...call) =>
      isDown ? Promise.reject(unavailable) : inner.heartbeat(...call);
    const leaseMs = 300;
    const { until, log, states, startLoading } = createRunnerHarness({
      store: { ...inner, heartbeat },
      leaseMs,
      downloads(job, context, count) {
        if (count === 1) return neverEnd(job, context);
        isDown = false;
        return writeMedium(job);
      },
    });
    stopTime();
    const { id } = await startLoading();
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(await until(id, "succeeded")).toMatchObject({ attempts: 1 });
    expect(states(id)).toEqual(["queued", "running", "queued", "running", "succeeded"]);
    const reason = "the lease expired while the store was unreachable";
    expect(log).toContainEqual(expect.objectContaining({ task: id, msg: "run interrupted; task requeued", reason }));
    const starts = log.filter(({ msg }) => msg === "run started");
    expect(starts.map(({ stalledCount }) => stalledCount)).toEqual([undefined, undefined]);
  });

  test("counts its lease from the request, however late the response came", async () => {
    const inner = createMemoryStore();
    let downloads = 0;
    const leaseMs = 100;
    const { log, run } = createRunnerHarness({
      leaseMs,
      store: {
        ...inner,
        async claim(query) {
          const claim = await inner.claim(query);
          if (claim !== undefined && log.length === 0) vi.advanceTimersByTime(leaseMs);
          return claim;
        },
      },
      downloads: async (job) => {
        downloads += 1;
        return writeMedium(job);
      },
    });
    stopTime();
    await run("succeeded");
    expect(log[1]).toMatchObject({ msg: expect.stringMatching(/^run (interrupted|ended)/) });
    expect(downloads).toBe(1);
  });
});

describe("a task that another process cancels or deletes", () => {
  const ways: [string, (store: TaskStore, id: string) => Promise<unknown>][] = [
    ["canceled", (store, id) => store.update(id, { state: "canceled" })],
    ["deleted", (store, id) => store.delete(id)],
  ];

  test.each(ways)("is no longer run once it is %s, without an event of it", async (_way, end) => {
    const { store, unheard } = withUnheardChanges(createMemoryStore());
    const aborted = Promise.withResolvers<unknown>();
    const leaseMs = 300;
    const { log, startLoading } = createRunnerHarness({
      store,
      leaseMs,
      downloads: (job, context) => neverEnd(job, context).finally(() => aborted.resolve(undefined)),
    });
    stopTime();
    const { id } = await startLoading();
    await unheard(() => end(store, id));
    await vi.advanceTimersByTimeAsync(leaseMs / 2);
    await aborted.promise;
    await vi.waitUntil(() => log.length === 2, 60_000);
    expect(log[1]).toMatchObject({ msg: expect.stringContaining("canceled, deleted or claimed") });
  });

  test.each(ways)("that is %s between its claim and its run leaves nothing", async (_way, end) => {
    const inner = createMemoryStore();
    const store: TaskStore = {
      ...inner,
      async claim(query) {
        const claim = await inner.claim(query);
        if (claim === undefined) return undefined;
        await end(inner, claim.task.id);
        await new Promise((resolve) => setImmediate(resolve));
        return claim;
      },
    };
    const harness = createRunnerHarness({ store, leaseMs: 600_000, downloads: neverEnd });
    await harness.add();
    harness.runner.start();
    await vi.waitUntil(() => harness.log.length === 2, 60_000);
    await harness.runner.stop();
    expect([harness.log[1]?.["msg"], harness.files.parts()]).toEqual([
      "run ended: the task was canceled, deleted or claimed elsewhere",
      [],
    ]);
  });
});

test("a run that fails after another claim took its task leaves the files to that one", async () => {
  const { store, unheard } = withUnheardChanges(createMemoryStore());
  const { runner, files, add, log } = createRunnerHarness({
    store,
    concurrency: 1,
    downloads: async ({ folder }) => {
      await writeFile(join(folder, "part"), "begun");
      const [task] = (await store.list({ limit: 1 })).tasks;
      await unheard(async () => {
        for (const state of ["canceled", "queued"] as const) {
          await store.update(task?.id ?? "", { state });
        }
        await store.claim({ leaseMs: 600_000 });
      });
      throw new ServiceError("no_media", "the response is not media");
    },
  });
  const { id } = await add();
  runner.start();
  await vi.waitUntil(() => log.length === 2, 60_000);
  await runner.stop();
  expect(await store.get(id)).toMatchObject({ state: "running", error: null });
  expect(files.parts()).toEqual([id]);
});

test("an event that is older than a run does not end it", async () => {
  const gate = new AbortController();
  const events = createTaskEvents();
  const { runner, files, add, until, untilLoading, states } = createRunnerHarness({
    store: createMemoryStore({ events }),
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
  const canceled = { ...task, state: "canceled" as const };
  events.publish(changeEvent(canceled, JSON.stringify(canceled)));
  await until(task.id, "canceled");
  await new Promise((resolve) => setImmediate(resolve));
  gate.abort();
  await until(task.id, "succeeded");
  await runner.stop();
  expect(states(task.id)).not.toContain("failed");
  expect(files.results()).toEqual([task.id]);
});

/** Wraps a store whose feed leaves out what is changed in `unheard`. */
function withUnheardChanges(inner: TaskStore) {
  let isSilent = false;
  const store: TaskStore = {
    ...inner,
    events: {
      ...inner.events,
      subscribe: (listener) =>
        inner.events.subscribe((event) => {
          if (!isSilent) listener(event);
        }),
    },
  };
  return {
    store,
    async unheard(change: () => Promise<unknown>): Promise<void> {
      isSilent = true;
      await change();
      isSilent = false;
    },
  };
}
