import { expect, test, vi } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import type { TaskChange } from "../../src/feed/task-changes.ts";
import { neverEnd } from "./engine.ts";
import { createRunnerHarness, stopTime } from "./harness.ts";

const down = new ServiceError("unavailable", "the task store failed: disk I/O error");

test("failed claims are retried; the log has a line when they start to fail and one when they work", async () => {
  let failures = 3;
  const { runner, log, add, until } = createRunnerHarness({
    store: faulty((call) => call === "claim" && failures-- > 0),
  });
  const { id } = await add();
  runner.start();
  for (const left of [2, 1]) {
    await vi.waitUntil(() => failures === left, 60_000);
    await add();
  }
  await until(id, "succeeded");
  expect(log.slice(0, 3)).toEqual([
    { level: "error", code: down.code, reason: down.message, msg: "claiming tasks failed; retrying every second" },
    { level: "info", ms: expect.any(Number), msg: "claiming tasks works again" },
    expect.objectContaining({ task: id, msg: "run started" }),
  ]);
});

test.each(["succeeded", "failed", "queued"] as const)(
  "an outcome (%s) that cannot be stored at once is stored later",
  async (state) => {
    let failures = 2;
    const isEnd = (change: TaskChange) => change.state === state;
    const { runner, add, until } = createRunnerHarness({
      store: faulty((call, change) => call === "update" && isEnd(change) && failures-- > 0),
      downloads: {
        succeeded: undefined,
        failed: () => Promise.reject(new ServiceError("no_media", "nothing")),
        queued: () => Promise.reject(new ServiceError("upstream_timeout", "slow")),
      }[state],
    });
    const { id } = await add();
    runner.start();
    await until(id, (task) => task.state === state && task.attempts === 1);
    expect(failures).toBeLessThan(1);
  },
);

test("a task whose outcome cannot be stored during the lease is claimed again", async () => {
  let isDown = true;
  const isEnd = ({ state }: TaskChange) => state === "succeeded" || state === "queued";
  const leaseMs = 150;
  const { runner, files, log, add, until } = createRunnerHarness({
    leaseMs,
    store: faulty((call, change) => isDown && (call === "heartbeat" || (call === "update" && isEnd(change)))),
  });
  stopTime();
  const { id } = await add();
  runner.start();
  await vi.waitUntil(() => files.results().length > 0, { timeout: 60_000, interval: 1 });
  await vi.advanceTimersByTimeAsync(leaseMs);
  await vi.waitUntil(
    () => log.some(({ msg }) => /storing its result failed|claimed elsewhere/.test(String(msg))),
    60_000,
  );
  expect(files.results()).toEqual([id]);
  isDown = false;
  expect(await until(id, "succeeded")).toMatchObject({ attempts: 1 });
  expect(files.results()).toEqual([id]);
});

test("progress that cannot be stored does not end the run", async () => {
  const { run } = createRunnerHarness({
    store: faulty((call, { progress }) => call === "update" && progress?.downloaded_bytes === 5),
    downloads: async (job, context, count) => {
      if (count > 1) throw new ServiceError("no_media", "the run was ended");
      setTimeout(() => context.onProgress({ stage: "processing", ...bytes }), 10);
      return neverEnd(job, context);
    },
  });
  const bytes = { downloaded_bytes: 6, total_bytes: 100 };
  await run(({ progress }) => progress?.downloaded_bytes === 6);
});

test("an unavailable store delays the stop by two seconds at most", async () => {
  let isDown = false;
  const { runner, log, startLoading } = createRunnerHarness({
    store: faulty((call) => isDown && call === "update"),
    leaseMs: 600_000,
    downloads: neverEnd,
  });
  await startLoading();
  isDown = true;
  await runner.stop();
  expect(log.at(-1)).toMatchObject({
    code: "unavailable",
    reason: down.message,
    msg: "run ended, but storing its result failed; the task runs again once its lease has expired",
  });
});

test("files that cannot be removed are logged in one line, and nothing else happens", async () => {
  const { store, files, log, add, until, run } = createRunnerHarness();
  const broken = new ServiceError("unavailable", "cannot remove the file: EIO");
  files.remove = () => Promise.reject(broken);
  const { id } = await run("succeeded");
  await store.delete(id);
  await vi.waitUntil(() => log.length === 3, 60_000);
  expect(log[2]).toMatchObject({ task: id, code: "unavailable", reason: broken.message });
  await until((await add()).id, "succeeded");
});

type Call = "claim" | "update" | "heartbeat";

/** Creates a memory store in which the calls that `fails` selects reject with `unavailable`. */
function faulty(fails: (call: Call, change: TaskChange) => boolean): TaskStore {
  const store = createMemoryStore();
  const check = (call: Call, change: TaskChange = {}) => {
    if (fails(call, change)) throw down;
  };
  return {
    ...store,
    async claim(query) {
      check("claim");
      return store.claim(query);
    },
    async update(id, change, options) {
      check("update", change);
      return store.update(id, change, options);
    },
    async heartbeat(...call) {
      check("heartbeat");
      return store.heartbeat(...call);
    },
  };
}
