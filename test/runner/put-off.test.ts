import { expect, test } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { writeMedium, type Downloads } from "./engine.ts";
import { createRunnerHarness } from "./harness.ts";
import { createTestClock } from "../contracts/task-store/harness.ts";

const untried = new ServiceError("upstream_status", "the host asked for a pause", {
  retryable: true,
  retryAfterS: 1,
  isUntried: true,
});
const refused = (retryAfterS?: number) =>
  new ServiceError("upstream_status", "the response has status 429", {
    retryable: true,
    upstreamStatus: 429,
    retryAfterS,
  });
const slow = new ServiceError("upstream_timeout", "the response is too slow", { retryAfterS: 1 });

/** Fails once with `failure`, after so many bytes. */
function failingOnce(failure: ServiceError, bytes: number): Downloads {
  return async (job, { onProgress }, count) => {
    if (count > 1) return writeMedium(job);
    onProgress({ stage: "downloading", downloaded_bytes: bytes, total_bytes: 100 });
    throw failure;
  };
}

test.each([
  ["that sent nothing, as its host is left alone, uses up no attempt", failingOnce(untried, 0), 1],
  ["whose host asks for a pause after the download has progressed uses up none", failingOnce(refused(1), 5), 1],
  ["whose host asks for a pause at once uses one up", failingOnce(refused(1), 0), 2],
  ["that is refused without a time to wait uses one up", failingOnce(refused(), 5), 2],
  ["whose host is too slow uses one up, although it is to wait", failingOnce(slow, 5), 2],
])("a run %s", async (_what, downloads, attempts) => {
  const { runner, add, until } = createRunnerHarness({ downloads });
  const { id } = await add();
  runner.start();
  const waiting = await until(id, ({ state, error }) => state === "queued" && error !== null);
  expect(waiting).toMatchObject({ attempts: attempts - 1, retry_at: expect.any(String) });
  expect(await until(id, "succeeded")).toMatchObject({ attempts });
});

test("the task of a host that is left alone stays queued, and the others run", async () => {
  let paused = ["busy.test"];
  const { runner, store, add, until } = createRunnerHarness({ pausedHosts: () => paused });
  const { id } = await add("https://busy.test/watch");
  const other = await add("https://other.test/watch");
  runner.start();
  await until(other.id, "succeeded");
  expect(await store.get(id)).toMatchObject({ state: "queued", attempts: 0 });
  paused = [];
  expect(await until(id, "succeeded")).toMatchObject({ attempts: 1 });
});

test("a page that asks for a pause each time does not hold up the other tasks of its host", async () => {
  const clock = createTestClock();
  const [bad, good, other] = ["https://busy.test/bad", "https://busy.test/good", "https://other.test/"] as const;
  let pauseEnd = clock.now().getTime();
  const ran: string[] = [];
  const { runner, add, until } = createRunnerHarness({
    now: clock.now,
    concurrency: 1,
    backoffMs: 10_000,
    pausedHosts: () => (clock.now().getTime() < pauseEnd ? ["busy.test"] : []),
    downloads: async (job) => {
      ran.push(job.format.url);
      if (job.format.url !== bad) return writeMedium(job);
      pauseEnd = clock.now().getTime() + 60_000;
      throw refused(60);
    },
  });
  const { id } = await add(bad);
  await add(good);
  runner.start();
  await until(id, ({ error }) => error !== null);
  clock.advance(60_000);
  await until((await add(other)).id, "succeeded");
  expect(ran).toEqual([bad, good, other]);
});

test("a run says that it waits for a host, and when it no longer does", async () => {
  const gate = Promise.withResolvers<void>();
  const downloads: Downloads = async (job, { onWaiting }) => {
    onWaiting?.(true);
    await gate.promise;
    return writeMedium(job);
  };
  const { runner, add, until } = createRunnerHarness({ downloads });
  const { id } = await add();
  runner.start();
  const waiting = await until(id, ({ progress }) => progress?.waiting_for === "host");
  expect(waiting.progress).toMatchObject({ stage: "downloading", speed: null, eta: null });
  gate.resolve();
  expect((await until(id, "succeeded")).progress).toBeNull();
});
