import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type ErrorCode, ServiceError } from "../../src/model/errors.ts";
import { accessKeyOf, newSecret } from "../../src/keys/secrets.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import type { Task } from "../../src/model/task.ts";
import { createTestClock } from "../contracts/task-store/harness.ts";
import { neverEnd, writeMedium, type Downloads } from "./engine.ts";
import { createTestFiles } from "./files.ts";
import { createTestResolver, pageOf } from "./resolver.ts";
import { createRunnerHarness } from "./harness.ts";

const refused = new ServiceError("upstream_status", "the response has status 503", {
  retryable: true,
  upstreamStatus: 503,
});

/** Writes a part, then throws `failure`; succeeds after `times` calls. */
function failing(failure: unknown, times = Infinity): Downloads {
  return async (job, _context, count) => {
    if (count > times) return writeMedium(job);
    await writeFile(join(job.folder, "part"), "begun");
    throw failure;
  };
}

describe("a retryable failure", () => {
  test("is retried until it passes; the error is visible meanwhile", async () => {
    const { runner, add, until, states } = createRunnerHarness({ downloads: failing(refused, 2) });
    const { id } = await add();
    runner.start();
    const waiting = await until(id, ({ state, attempts }) => state === "queued" && attempts === 1);
    const error = {
      code: "upstream_status",
      message: "the response has status 503",
      retryable: true,
      upstream_status: 503,
    };
    expect(waiting).toMatchObject({ error, finished_at: null });
    expect(await until(id, ({ state, attempts }) => state === "running" && attempts === 2)).toEqual(
      expect.objectContaining({ error }),
    );
    expect(await until(id, "succeeded")).toMatchObject({ attempts: 3, error: null });
    expect(states(id).join(" ")).toBe("queued running queued running queued running succeeded");
  });

  test("is final after the last attempt; the parts stay for a retry to resume from", async () => {
    const { runner, files, add, until } = createRunnerHarness({
      maxAttempts: 2,
      downloads: failing(refused),
    });
    const { id } = await add();
    runner.start();
    const failed = await until(id, "failed");
    expect(failed).toMatchObject({ attempts: 2, error: { code: "upstream_status" } });
    await runner.stop();
    expect(files.parts()).toEqual([id]);
  });

  test("is retried after a back-off, doubled with each attempt, or as late as the server asks", async () => {
    const clock = createTestClock();
    const asked = new ServiceError("too_many_requests", "slow down", { retryAfterS: 60 });
    const { runner, store, add, until } = createRunnerHarness({
      now: clock.now,
      backoffMs: 10_000,
      maxAttempts: 9,
      downloads: async (_job, _context, count) => {
        throw count === 3 ? asked : refused;
      },
    });
    const { id } = await add("https://slow.test/");
    runner.start();
    let attempt = 1;
    for (const waitMs of [5_000, 10_000, 60_000, 40_000]) {
      const waiting = await until(id, ({ state, attempts }) => state === "queued" && attempts === attempt);
      expect(waiting.retry_at).toBe(new Date(clock.now().getTime() + waitMs).toISOString());
      clock.advance(waitMs - 1);
      // The other task wakes the runner, which must not claim the first one yet.
      await until((await add("https://other.test/")).id, "running");
      expect(await store.get(id)).toMatchObject({ state: "queued", attempts: attempt });
      clock.advance(1);
      attempt += 1;
      await add("https://other.test/");
      const isNextRun = ({ state, attempts }: Task) => state === "running" && attempts === attempt;
      expect(await until(id, isNextRun)).not.toHaveProperty("retry_at");
    }
  });
});

describe("a failure that is not retryable", () => {
  test.each([
    "no_media",
    "drm_protected",
    "live_stream",
    "too_large",
    "address_blocked",
    "upstream_status",
  ] satisfies ErrorCode[])("%s: fails the task at once, its parts removed before", async (code) => {
    const failure = new ServiceError(code, "for good");
    const { files, run } = createRunnerHarness({ downloads: failing(failure) });
    const { error, attempts } = await run("failed");
    const message = code === "too_large" ? "for good (MAX_FILE_BYTES)" : "for good";
    expect(error).toEqual({ code, message, retryable: false });
    expect(attempts).toBe(1);
    expect(files.parts()).toEqual([]);
  });

  test("an unexpected error is internal, not retried, and in the log", async () => {
    const fault = new TypeError("x is not a function at /secret/path");
    const { runner, log, run } = createRunnerHarness({ downloads: failing(fault) });
    const { id, error, attempts } = await run("failed");
    expect(error).toMatchObject({ code: "internal", retryable: false });
    expect(error?.message).not.toContain("secret");
    expect(attempts).toBe(1);
    await runner.stop();
    expect(log).toContainEqual(expect.objectContaining({ err: fault, task: id, code: "internal" }));
  });

  test("a full disk fails only its task, whose parts are removed before", async () => {
    const { runner, files, add, until } = createRunnerHarness({
      downloads: async (job, context, count) => {
        if (job.format.url !== "https://large.test/") return writeMedium(job);
        return failing(new ServiceError("disk_full", "no space"))(job, context, count);
      },
    });
    const large = await add("https://large.test/");
    const other = await add("https://other.test/");
    runner.start();
    expect(await until(large.id, "failed")).toMatchObject({ error: { code: "disk_full" } });
    expect(files.parts()).not.toContain(large.id);
    await until(other.id, "succeeded");
  });
});

test("no run starts with too little free disk space", async () => {
  const files = { ...createTestFiles(), freeBytes: async () => 99 };
  const resolver = createTestResolver(() => Promise.reject(new Error("must not be asked")));
  const { run } = createRunnerHarness({ files, resolver, minFreeBytes: 100 });
  const { error } = await run("failed");
  expect(error).toMatchObject({ code: "disk_full" });
  expect(error?.message).toContain("100 bytes must be free (MIN_FREE_BYTES), 99 are");
});

test("a run that lasts too long ends with upstream_timeout, in the resolver as in the engine", async () => {
  const { runner, add, until } = createRunnerHarness({
    runTimeoutMs: 20,
    maxAttempts: 1,
    resolver: createTestResolver((url, signal) =>
      url.hostname === "page.test" ? untilAborted(signal) : Promise.resolve(pageOf(url)),
    ),
    downloads: neverEnd,
  });
  const page = await add("https://page.test/");
  const medium = await add("https://medium.test/");
  runner.start();
  const message = "the run did not complete within 0.02 s (RUN_TIMEOUT_S)";
  const error = { code: "upstream_timeout", retryable: true, message };
  expect(await until(page.id, "failed")).toMatchObject({ error });
  expect(await until(medium.id, "failed")).toMatchObject({ error });
});

test("a failure in resolving is treated like others", async () => {
  const blocked = new ServiceError("address_blocked", "127.0.0.1 is not public");
  const { run } = createRunnerHarness({
    resolver: createTestResolver(() => Promise.reject(blocked)),
  });
  expect(await run("failed")).toMatchObject({
    attempts: 1,
    info: null,
    error: { code: "address_blocked" },
  });
});

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}

test("a file over its owner's quota fails the task for good, and does not stay", async () => {
  const { store, runner, files, until } = createRunnerHarness({ concurrency: 1 });
  const limits = { max_bytes: 1 };
  await store.keys.add(accessKeyOf(newSecret(), { name: "anna", admin: false, limits }, new Date()));
  const { id } = await store.create(newTask("https://a.test/", {}, new Date(), "anna"));
  runner.start();
  const failed = await until(id, "failed");
  expect(failed).toMatchObject({
    attempts: 1,
    file: null,
    error: { code: "quota_exceeded", retryable: false },
  });
  await runner.stop();
  expect(await files.ids()).toEqual([]);
});
