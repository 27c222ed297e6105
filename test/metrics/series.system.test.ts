import { expect, it, onTestFinished } from "vitest";
import { newTask } from "../../src/feed/task-changes.ts";
import { buildApp } from "../http/app.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { createRunnerHarness } from "../runner/harness.ts";
import { createTestResolver, pageOf } from "../runner/resolver.ts";
import { countSeries, valueOf } from "./exposition.ts";
import { observeStore, scrape } from "./observed-store.ts";

it("stays under 500 series after 2,000 tasks on 1,000 hosts", async () => {
  const { metrics, store } = observeStore();
  const count = 2_000;
  const codes = ["upstream_status", "no_media", "login_required", "internal"] as const;
  await using app = await buildApp({ store, observer: metrics.app });
  const urlOf = (n: number) => `https://host-${n % 1_000}.example.com/watch/${n}`;
  // One of each host over HTTP.
  for (let n = 0; n < 1_000; n += 1) {
    const body = { url: urlOf(n) };
    const created = await app.inject({ method: "POST", url: "/tasks/", body });
    const { id } = created.json<{ id: string }>();
    await app.inject(`/tasks/${id}`);
    await app.inject(`/${id}`);
  }
  for (let n = 1_000; n < count; n += 1) await store.create(newTask(urlOf(n), {}, new Date()));
  const resolver = createTestResolver(async (url) => {
    const n = Number(url.pathname.split("/").at(-1));
    if (n % 10 > 0) throw new ServiceError(codes[n % codes.length]!, `${n}`);
    return pageOf(url);
  });
  const { runner } = createRunnerHarness({
    store,
    observer: metrics.run,
    resolver,
    concurrency: 20,
  });
  const ended = Promise.withResolvers<void>();
  let left = count;
  onTestFinished(
    store.events.subscribe(({ state }) => {
      if (state === "succeeded" || state === "failed") left -= 1;
      if (left === 0) ended.resolve();
    }),
  );
  runner.start();
  await ended.promise;
  await runner.stop();
  const families = await scrape(metrics);
  expect(valueOf(families, "unreel_tasks", { state: "succeeded" })).toBe(count / 10);
  expect(valueOf(families, "unreel_runs_ended_total", { code: "no_media" })).toBe(count / 4);
  expect(countSeries(families)).toBeLessThan(500);
  expect(JSON.stringify([...families])).not.toMatch(/host-\d|watch/);
});
