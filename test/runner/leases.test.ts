import { describe, expect, test, vi } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { createTestClock } from "../contracts/task-store/harness.ts";
import { formatOf } from "../formats.ts";
import { neverEnd, writeMedium } from "./engine.ts";
import { createRunnerHarness, stopTime } from "./harness.ts";
import { createTestResolver, pageOf } from "./resolver.ts";

describe("a task whose workers died reading its page", () => {
  test.each([1, 2, 4])("continues in the same attempt after %i of them", async (count) => {
    const { store, ids } = await killed(count);
    const { runner, until } = createRunnerHarness({ store, crashPauseMs: 1 });
    runner.start();
    expect(await until(ids[0], "succeeded")).toMatchObject({ attempts: 1 });
  });

  test("fails after five of them, whatever attempts are left", async () => {
    const { store, ids } = await killed(5);
    let reads = 0;
    const resolver = createTestResolver(async (url) => {
      reads += 1;
      return pageOf(url);
    });
    const { runner, until } = createRunnerHarness({ store, resolver });
    runner.start();
    const { error, attempts } = await until(ids[0], "failed");
    const message = "poison task: 5 processes in a row died reading its page";
    expect(error).toEqual({ code: "internal", message, retryable: false });
    expect([attempts, reads]).toEqual([1, 0]);
  });

  test("is read at once after two of them, and later after more, while others go on", async () => {
    const { store, ids } = await killed(2, 3);
    const { runner, add, until, states } = createRunnerHarness({ store, crashPauseMs: 60_000, concurrency: 2 });
    runner.start();
    await until(ids[0], "succeeded");
    for (const name of ["a", "b", "c"]) await until((await add(`https://${name}.test/`)).id, "succeeded");
    expect(states(ids[1])).toEqual(["running"]);
    await runner.stop();
    expect(await store.get(ids[1])).toMatchObject({ state: "queued", attempts: 0 });
  });

  test("is not read while another such page is, but beside others", async () => {
    const { store, ids } = await killed(2, 3);
    const reading = new Set<string>();
    const gate = Promise.withResolvers<void>();
    const resolver = createTestResolver(async (url) => {
      if (url.pathname === "/other") return pageOf(url);
      expect(reading.size).toBe(0);
      reading.add(url.href);
      await gate.promise;
      reading.delete(url.href);
      return pageOf(url);
    });
    const { runner, add, until } = createRunnerHarness({ store, resolver, crashPauseMs: 1, concurrency: 3 });
    runner.start();
    const { id } = await add("https://video.example.com/other");
    await until(id, "succeeded");
    gate.resolve();
    for (const each of ids) expect(await until(each, "succeeded")).toMatchObject({ attempts: 1 });
  });
});

describe("a death of the worker", () => {
  test("counts while a page is read, also when it is read again, and no longer", async () => {
    const store = createMemoryStore();
    const updates = vi.spyOn(store, "update");
    const counts = () => updates.mock.calls.flatMap(([, , options]) => options?.stalledCount ?? []);
    const whileRead: number[][] = [];
    const resolver = createTestResolver(async (url) => {
      whileRead.push(counts());
      return pageOf(url, { formats: [formatOf("only", { url: `${url.href}?${whileRead.length}` })] });
    });
    const { startLoading } = createRunnerHarness({
      store,
      resolver,
      downloads: async (job, context) => {
        if (whileRead.length > 1) return neverEnd(job, context);
        throw new ServiceError("upstream_status", "the server returned 403", { upstreamStatus: 403 });
      },
    });
    await startLoading();
    expect(whileRead).toEqual([[1], [1, 0, 1]]);
    expect(counts().slice(3)).toEqual([0, 0]);
  });

  test("counts nothing while its task only waits to be read", async () => {
    const { store, clock, ids } = await killed(3);
    const { runner, log } = createRunnerHarness({ store, now: clock.now, crashPauseMs: 60_000, concurrency: 1 });
    runner.start();
    await vi.waitUntil(() => log.length === 1, 60_000);
    expect(log[0]).toMatchObject({ task: ids[0], msg: "run started", stalledCount: 3 });
    clock.advance(60_000);
    expect(await store.claim({ leaseMs: 1 })).toMatchObject({ stalledCount: 3 });
  });

  test.each([
    [100, 3],
    [101, 0],
  ])(
    "counts from the earlier ones on if the run has %i bytes where the earlier ones had 100: from %i",
    async (bytes, from) => {
      const { store, clock, ids } = await killed(3);
      const { runner, until, changes } = createRunnerHarness({
        store,
        now: clock.now,
        crashPauseMs: 1,
        downloads: async (job, context) => {
          context.onProgress({ stage: "downloading", downloaded_bytes: bytes, total_bytes: 900 });
          return neverEnd(job, { ...context, onProgress: () => {} });
        },
      });
      runner.start();
      await until(ids[0], ({ progress }) => progress?.total_bytes === 900);
      const resolving = changes.find(({ progress }) => progress?.stage === "resolving");
      expect(resolving).toMatchObject({ progress: { downloaded_bytes: 100 } });
      clock.advance(60_000);
      expect(await store.claim({ leaseMs: 1 })).toMatchObject({ stalledCount: from });
    },
  );
});

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
  const leaseMs = 1_500;
  const { states, startLoading } = createRunnerHarness({ store, leaseMs, downloads: neverEnd });
  stopTime();
  const { id } = await startLoading();
  await vi.advanceTimersByTimeAsync(3 * leaseMs);
  expect(beats.length).toBeGreaterThanOrEqual(6);
  expect(beats).not.toContain(false);
  expect(await inner.claim({ leaseMs: 1 })).toBeUndefined();
  expect(states(id)).toEqual(["queued", "running"]);
});

test("another worker goes on with the task of one that died, a second after its lease at the latest, and not before", async () => {
  const leaseMs = 30_000;
  const { store, runner, add, untilLoading, changes } = createRunnerHarness({ leaseMs, downloads: neverEnd });
  stopTime();
  const { id } = await add();
  const dead = await store.claim({ leaseMs });
  expect(dead?.task.id).toBe(id);
  runner.start();
  await vi.advanceTimersByTimeAsync(leaseMs - 1);
  expect(changes).toHaveLength(2);
  const resumed = untilLoading(id);
  await vi.advanceTimersByTimeAsync(1_001);
  expect(await resumed).toMatchObject({ state: "running", attempts: 1 });
});

test("a run whose task another claim has taken is aborted, and changes nothing more", async () => {
  const clock = createTestClock();
  const inner = createMemoryStore({ now: clock.now });
  const aborted = Promise.withResolvers<unknown>();
  const { files, log, startLoading } = createRunnerHarness({
    store: inner,
    now: clock.now,
    leaseMs: 60,
    downloads: (job, context) => neverEnd(job, context).finally(() => aborted.resolve(undefined)),
  });
  stopTime();
  const { id } = await startLoading();
  clock.advance(60);
  const claim = await inner.claim({ leaseMs: 600_000 });
  await vi.advanceTimersByTimeAsync(30);
  await aborted.promise;
  await vi.waitUntil(() => log.length === 2, 60_000);
  expect(log[1]).toMatchObject({ task: id, msg: expect.stringContaining("run ended") });
  expect(await inner.get(id)).toEqual(claim?.task);
  expect(files.parts()).toEqual([id]);
});

test("a task that its own runner claims again, as after a suspend, has one run at a time", async () => {
  const clock = createTestClock();
  let active = 0;
  const { add, until, startLoading } = createRunnerHarness({
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
  const { id } = await startLoading("https://a.test/");
  clock.advance(600_000);
  await add("https://b.test/");
  expect(await until(id, "succeeded")).toMatchObject({ attempts: 1 });
});

/** A store with a task for each of `counts`: so many of its workers died reading its page, after 100 bytes. */
async function killed<Counts extends number[]>(...counts: Counts) {
  const clock = createTestClock();
  const store = createMemoryStore({ now: clock.now });
  const progress = { stage: "downloading", downloaded_bytes: 100, total_bytes: null, speed: null, eta: null } as const;
  const ids = counts.map(() => "") as { [Index in keyof Counts]: string };
  for (const [index, stalledCount] of counts.entries()) {
    const { id } = await store.create(newTask(`https://${index}.example.com/`, {}, clock.now()));
    await store.claim({ leaseMs: 1 });
    await store.update(id, { progress }, { stalledCount });
    ids[index] = id;
  }
  clock.advance(1);
  return { store, clock, ids };
}
