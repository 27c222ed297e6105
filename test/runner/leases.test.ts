import { describe, expect, test, vi } from "vitest";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { createClock } from "../contracts/task-store/harness.ts";
import { neverEnd, writeMedium } from "./engine.ts";
import { createRunnerHarness } from "./harness.ts";

describe("a task whose workers die", () => {
  test("continues in the same attempt after the first", async () => {
    const { store } = await killed(1);
    const { runner, until } = createRunnerHarness({ store });
    runner.start();
    const [task] = (await store.list({ limit: 1 })).tasks;
    expect(await until(task?.id ?? "", "succeeded")).toMatchObject({ attempts: 1 });
  });

  test("fails after two of them, whatever attempts are left", async () => {
    const { store, id } = await killed(2);
    let downloads = 0;
    const { runner, until } = createRunnerHarness({
      store,
      downloads: async (job) => {
        downloads += 1;
        return writeMedium(job);
      },
    });
    runner.start();
    const { error, attempts } = await until(id, "failed");
    const message = "poison task: 2 workers in a row died running it";
    expect(error).toEqual({ code: "internal", message, retryable: false });
    expect([attempts, downloads]).toEqual([1, 0]);
  });

  test("counts them from 0 again once a run has more bytes than earlier ones", async () => {
    const { store, clock, id } = await killed(1, 100);
    const { runner, until } = createRunnerHarness({
      store,
      now: clock.now,
      downloads: async (job, context) => {
        const report = { stage: "downloading", total_bytes: 900 } as const;
        context.onProgress({ ...report, downloaded_bytes: 100 });
        context.onProgress({ ...report, downloaded_bytes: 101 });
        return neverEnd(job, { ...context, onProgress: () => {} });
      },
    });
    runner.start();
    await until(id, ({ progress }) => progress?.downloaded_bytes === 101);
    clock.advance(60_000);
    expect(await store.claim({ leaseMs: 1 })).toMatchObject({ stalledCount: 1 });
  });

  test("does not count from 0 again if a run has only as many bytes as earlier ones", async () => {
    const { store, clock, id } = await killed(1, 100);
    const { runner, until, changes } = createRunnerHarness({
      store,
      now: clock.now,
      downloads: async (job, context) => {
        context.onProgress({ stage: "downloading", downloaded_bytes: 100, total_bytes: 900 });
        return neverEnd(job, { ...context, onProgress: () => {} });
      },
    });
    runner.start();
    await until(id, ({ progress }) => progress?.total_bytes === 900);
    const resolving = changes.find(({ progress }) => progress?.stage === "resolving");
    expect(resolving).toMatchObject({ progress: { downloaded_bytes: 100 } });
    clock.advance(60_000);
    expect(await store.claim({ leaseMs: 1 })).toMatchObject({ stalledCount: 2 });
  });
});

describe("a task whose worker died", () => {
  test("runs alone: the next one starts when it has ended", async () => {
    const { store, id } = await killed(1);
    const ending = Promise.withResolvers<void>();
    const { runner, add, until, log } = createRunnerHarness({
      store,
      downloads: async (job) => {
        await ending.promise;
        return writeMedium(job);
      },
    });
    const other = await add("https://video.example.com/other");
    runner.start();
    await until(id, ({ progress }) => progress?.stage === "resolving");
    await add("https://video.example.com/third");
    expect(starts(log)).toEqual([id]);
    ending.resolve();
    await until(other.id, "succeeded");
    expect(starts(log).slice(0, 2)).toEqual([id, other.id]);
    expect(log[1]).toMatchObject({ task: id, msg: "run succeeded" });
  });

  test("runs beside others once it is further than then", async () => {
    const { store, id } = await killed(1, 100);
    const { runner, add, untilLoading, changes } = createRunnerHarness({
      store,
      downloads: async (job, context) => {
        context.onProgress({ stage: "downloading", downloaded_bytes: 101, total_bytes: 900 });
        return neverEnd(job, { ...context, onProgress: () => {} });
      },
    });
    const other = await add("https://video.example.com/other");
    runner.start();
    await untilLoading(other.id);
    expect(changes.findLast((task) => task.id === id)).toMatchObject({ state: "running" });
  });

  test("waits until the runs have ended that go on already", async () => {
    const clock = createClock();
    const store = createMemoryStore({ now: clock.now });
    const ending = Promise.withResolvers<void>();
    const { runner, add, until, log } = createRunnerHarness({
      store,
      now: clock.now,
      leaseMs: 3_000,
      downloads: async (job) => {
        if (job.format.url.endsWith("first")) await ending.promise;
        return writeMedium(job);
      },
    });
    const dead = await add("https://video.example.com/dead");
    await store.claim({ leaseMs: 1_000 });
    const first = await add("https://video.example.com/first");
    runner.start();
    await until(first.id, ({ progress }) => progress?.stage === "downloading");
    const claimed = vi.spyOn(store, "heartbeat");
    clock.advance(1_001);
    await vi.waitUntil(() => claimed.mock.calls.some(([id]) => id === dead.id), {
      timeout: 10_000,
    });
    expect(starts(log)).toEqual([first.id]);
    ending.resolve();
    await until(dead.id, "succeeded");
    expect(log.map(({ msg }) => msg).slice(0, 3)).toEqual(["run started", "run succeeded", "run started"]);
  });
});

function starts(log: readonly Record<string, unknown>[]): unknown[] {
  return log.filter(({ msg }) => msg === "run started").map(({ task }) => task);
}

test("heartbeats hold a task longer than its lease", async () => {
  const beats: boolean[] = [];
  const inner = createMemoryStore();
  const store: TaskStore = {
    ...inner,
    async heartbeat(...call) {
      const isHeld = await inner.heartbeat(...call);
      beats.push(isHeld);
      return isHeld;
    },
  };
  const { runner, add, untilLoading, states } = createRunnerHarness({
    store,
    leaseMs: 60,
    downloads: neverEnd,
  });
  const { id } = await add();
  runner.start();
  await untilLoading(id);
  await vi.waitUntil(() => beats.length >= 6, 10_000);
  expect(beats).not.toContain(false);
  expect(await inner.claim({ leaseMs: 1 })).toBeUndefined();
  expect(states(id)).toEqual(["queued", "running"]);
});

test("a run whose task another claim has taken is aborted, and changes nothing more", async () => {
  const clock = createClock();
  const inner = createMemoryStore({ now: clock.now });
  const aborted = Promise.withResolvers<unknown>();
  const { runner, files, add, untilLoading, log } = createRunnerHarness({
    store: inner,
    now: clock.now,
    leaseMs: 60,
    downloads: (job, context) => neverEnd(job, context).finally(() => aborted.resolve(undefined)),
  });
  const { id } = await add();
  runner.start();
  await untilLoading(id);
  clock.advance(60);
  const claim = await inner.claim({ leaseMs: 600_000 });
  await aborted.promise;
  await vi.waitUntil(() => log.length === 2, 10_000);
  expect(log[1]).toMatchObject({ task: id, msg: expect.stringContaining("run ended") });
  expect(await inner.get(id)).toEqual(claim?.task);
  expect(files.parts()).toEqual([id]);
});

test("a task that its own runner claims again, as after a suspend, has one run at a time", async () => {
  const clock = createClock();
  let active = 0;
  const { runner, add, until, untilLoading } = createRunnerHarness({
    now: clock.now,
    leaseMs: 600_000,
    downloads: async (job, context, count) => {
      if (job.format.url === "https://b.test/") return writeMedium(job);
      expect(active).toBe(0);
      if (count > 1) return writeMedium(job);
      active += 1;
      await neverEnd(job, context).catch(() => undefined);
      active -= 1;
      throw context.signal.reason;
    },
  });
  const { id } = await add("https://a.test/");
  runner.start();
  await untilLoading(id);
  clock.advance(600_000);
  await add("https://b.test/");
  expect(await until(id, "succeeded")).toMatchObject({ attempts: 1 });
});

/** Creates a store with one task, whose worker died `count` times after `bytes` were downloaded. */
async function killed(count: number, bytes = 0) {
  const clock = createClock();
  const store = createMemoryStore({ now: clock.now });
  const { id } = await store.create(newTask("https://video.example.com/", {}, clock.now()));
  for (let run = 0; run < count; run += 1) {
    await store.claim({ leaseMs: 1 });
    clock.advance(1);
  }
  const downloaded = { downloaded_bytes: bytes, total_bytes: null, speed: null, eta: null };
  await store.update(id, { progress: { stage: "downloading", ...downloaded } });
  return { store, clock, id };
}
