import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { createTestClock } from "../contracts/task-store/harness.ts";
import { neverEnd, writeMedium } from "./engine.ts";
import { createTestFiles } from "./files.ts";
import { createTestResolver, pageOf } from "./resolver.ts";
import { createRunnerHarness, type RunnerHarness } from "./harness.ts";

/** Longer than any test, so that heartbeats are only sent on demand. */
const leaseMs = 600_000;

const ways: [string, (harness: RunnerHarness, id: string) => Promise<unknown>][] = [
  ["canceled", ({ store }, id) => store.update(id, { state: "canceled" })],
  ["deleted", ({ store }, id) => store.delete(id)],
];

describe.each(ways)("a task that is %s", (_name, end) => {
  test("during its download stops at once, and leaves no parts", async () => {
    const ended = Promise.withResolvers<unknown>();
    const harness = createRunnerHarness({
      leaseMs,
      downloads: (job, context) => neverEnd(job, context).finally(() => ended.resolve(undefined)),
    });
    const { id } = await harness.startLoading();
    expect(harness.files.parts()).toEqual([id]);
    await end(harness, id);
    await ended.promise;
    await vi.waitUntil(() => harness.files.parts().length === 0, 60_000);
    const next = await harness.add("https://video.example.com/next");
    await harness.until(next.id, "running");
    expect(await harness.store.get(id)).toEqual(
      harness.states(id).includes("canceled") ? expect.objectContaining({ attempts: 1 }) : undefined,
    );
  });

  test("during the resolving never reaches the engine", async () => {
    const resolving = Promise.withResolvers<void>();
    let downloads = 0;
    const harness = createRunnerHarness({
      leaseMs,
      resolver: createTestResolver(
        (_url, signal) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason));
            resolving.resolve();
          }),
      ),
      downloads: async (job) => {
        downloads += 1;
        return writeMedium(job);
      },
    });
    const { id } = await harness.add();
    harness.runner.start();
    await resolving.promise;
    await end(harness, id);
    await harness.runner.stop();
    expect([downloads, harness.files.parts()]).toEqual([0, []]);
    expect(harness.log.at(-1)).toMatchObject({
      task: id,
      msg: expect.stringContaining("run ended"),
    });
  });

  test("while its result is being saved has none in the end", async () => {
    const files = createTestFiles();
    const harness = createRunnerHarness({
      files: {
        ...files,
        async saveResult(id, path) {
          await files.saveResult(id, path);
          await end(harness, id);
        },
      },
    });
    await harness.add();
    harness.runner.start();
    await vi.waitUntil(() => harness.log.length === 2, 60_000);
    await harness.runner.stop();
    expect([files.results(), files.parts()]).toEqual([[], []]);
  });

  test("during the delay of its retry leaves no parts", async () => {
    const harness = createRunnerHarness({
      now: createTestClock().now,
      backoffMs: 1000,
      downloads: async ({ folder }) => {
        await writeFile(join(folder, "part"), "begun");
        throw new ServiceError("upstream_unreachable", "connection lost");
      },
    });
    const { id } = await harness.run(({ state, attempts }) => state === "queued" && attempts === 1);
    expect(harness.files.parts()).toEqual([id]);
    await end(harness, id);
    await vi.waitUntil(() => harness.files.parts().length === 0, 60_000);
  });
});

test("a task deleted after its success loses its file", async () => {
  const { store, files, run } = createRunnerHarness();
  const { id } = await run("succeeded");
  expect(files.results()).toEqual([id]);
  await store.delete(id);
  await vi.waitUntil(() => files.results().length === 0, 60_000);
});

test("a task canceled and requeued at once keeps the result of its new run", async () => {
  const { runner, store, files, until, startLoading } = createRunnerHarness({
    downloads: (job, context, count) => (count === 1 ? neverEnd(job, context) : writeMedium(job)),
  });
  const { id } = await startLoading();
  await Promise.all([store.update(id, { state: "canceled" }), store.update(id, { state: "queued" })]);
  await until(id, "succeeded");
  await runner.stop();
  expect([files.results(), files.parts()]).toEqual([[id], []]);
});

test("a run that is slow to end delays the next run of its own task only", async () => {
  const gate = Promise.withResolvers<void>();
  let active = 0;
  const { store, add, until, startLoading } = createRunnerHarness({
    concurrency: 3,
    perHost: 3,
    resolver: createTestResolver(async (url) => pageOf(url)),
    downloads: async (job, context, count) => {
      if (count > 1 || !job.format.url.endsWith("slow")) {
        expect(active).toBe(job.format.url.endsWith("slow") ? 0 : 1);
        return writeMedium(job);
      }
      active += 1;
      await neverEnd(job, context).catch(() => gate.promise);
      active -= 1;
      throw context.signal.reason;
    },
  });
  const { id } = await startLoading("https://a.test/slow");
  await store.update(id, { state: "canceled" });
  await store.update(id, { state: "queued" });
  await until((await add("https://a.test/other")).id, "succeeded");
  gate.resolve();
  await until(id, "succeeded");
});
