import { expect, it, onTestFinished } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";
import { buildApp, buildMetricsApp } from "../http/app.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { addFinishedTask } from "../http/finished-task.ts";
import { writeMedium } from "../runner/engine.ts";
import { createRunnerHarness } from "../runner/harness.ts";
import { createTestResolver, pageOf } from "../runner/resolver.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import { makeFolder } from "../folder.ts";
import { parseExposition, valueOf } from "./exposition.ts";
import { files, freeBytes, observeStore, scrape } from "./observed-store.ts";

it("serves them as a Prometheus text, on an app of their own", async () => {
  const { metrics } = observeStore();
  await using app = await buildMetricsApp({ metrics });
  const response = await app.inject("/metrics");
  expect(response.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(valueOf(parseExposition(response.body), "unreel_disk_free_bytes")).toBe(freeBytes);
  expect((await app.inject("/tasks/")).json()).toMatchObject({
    code: "not_found",
    detail: "no route /tasks/: this port only serves /metrics",
  });
  expect((await app.inject({ method: "POST", url: "/metrics" })).statusCode).toBe(405);
});

it("counts requests by route and status; what is no documented route is one", async () => {
  const { metrics, store } = observeStore();
  await using app = await buildApp({ store, observer: metrics.app });
  const requests = [
    ["GET", "/tasks/"],
    ["HEAD", "/tasks/"],
    ["GET", "/tasks/?limit=0"],
    ["GET", "/tasks/0199d3f0-5b7e-7000-8000-0123456789ab"],
    ["GET", "/tasks/another"],
    ["GET", "/tasks"],
    ["PROPFIND", "/tasks/"],
    ["GET", "/secret/1"],
    ["GET", "/secret/2?token=3"],
    ["POST", "/secret/4"],
    ["GET", "/secret/%zz"],
  ] as const;
  for (const [method, url] of requests) await app.inject({ method: method as "GET", url });
  const samples = (await scrape(metrics)).get("unreel_http_requests_total")!.samples;
  const counted = samples.map(({ labels: { method, route, status }, value }) =>
    [method, route, status, value].join(" "),
  );
  expect(counted.toSorted()).toEqual([
    "GET /tasks/ 200 2",
    "GET /tasks/ 400 1",
    "GET /tasks/:id 404 2",
    "other other 308 1",
    "other other 400 1",
    "other other 404 3",
    "other other 405 1",
  ]);
});

it("times requests by route", async () => {
  const { metrics, store } = observeStore();
  await using app = await buildApp({ store, observer: metrics.app });
  await app.inject("/health/live");
  await app.inject("/health/live");
  const families = await scrape(metrics);
  const labels = { method: "GET", route: "/health/live" };
  const name = "unreel_http_request_duration_seconds";
  expect(valueOf(families, `${name}_count`, labels)).toBe(2);
  expect(valueOf(families, `${name}_sum`, labels)).toBeGreaterThan(0);
});

it("counts the bytes of files that are sent, of a range only those", async () => {
  const store = createMemoryStore();
  const disk = openDiskFiles({ folder: makeFolder() });
  const metrics = createMetrics({ store, files: disk });
  await using app = await buildApp({ store, files: disk, observer: metrics.app });
  const { id } = await addFinishedTask({ store, files: disk }, Buffer.alloc(100_000));
  await app.inject(`/tasks/${id}/file`);
  await app.inject({ url: `/tasks/${id}/file`, headers: { range: "bytes=0-9" } });
  await app.inject({ method: "HEAD", url: `/tasks/${id}/file` });
  expect(valueOf(await scrape(metrics), "unreel_file_served_bytes_total")).toBe(100_010);
});

it("tells the tasks by state, and how long the oldest one waits", async () => {
  const store = createMemoryStore();
  let nowMs = Date.UTC(2030, 0, 1);
  const harness = createRunnerHarness({ store, now: () => new Date(nowMs), concurrency: 0 });
  const metrics = createMetrics({ store, files, now: () => new Date(nowMs) });
  await harness.add();
  nowMs += 90_000;
  const { id } = await harness.add();
  await store.update(id, { state: "canceled" });
  const families = await scrape(metrics);
  expect(valueOf(families, "unreel_tasks", { state: "queued" })).toBe(1);
  expect(valueOf(families, "unreel_tasks", { state: "canceled" })).toBe(1);
  expect(valueOf(families, "unreel_tasks", { state: "running" })).toBe(0);
  expect(valueOf(families, "unreel_oldest_queued_task_age_seconds")).toBe(90);
});

it("leaves out what the store and the disk cannot tell", async () => {
  const store = createMemoryStore();
  await store.close();
  const refuse = () => Promise.reject(new ServiceError("unavailable", "x"));
  const metrics = createMetrics({ store, files: { freeBytes: refuse } });
  const families = await scrape(metrics);
  for (const name of ["unreel_tasks", "unreel_oldest_queued_task_age_seconds", "unreel_disk_free_bytes"]) {
    expect(families.get(name)?.samples).toEqual([]);
  }
});

it("counts what is blocked by its reason, which is one of a closed list", async () => {
  const { metrics, store } = observeStore();
  const client = createHttpClient({ onBlocked: metrics.onBlocked });
  onTestFinished(() => client.close());
  await using app = await buildApp({ store, client });
  for (const host of ["127.0.0.1", "[::1]", "10.1.2.3", "printer.local", "93.184.216.34"]) {
    await app.inject({ method: "POST", url: "/tasks/", body: { url: `http://${host}/` } });
  }
  metrics.engine.onBlocked("a text from a process that was taken over");
  const { samples } = (await scrape(metrics)).get("unreel_blocked_addresses_total")!;
  expect(samples.map(({ labels, value }) => [labels["reason"], value])).toEqual([
    ["loopback", 2],
    ["private", 1],
    ["local name", 1],
    ["other", 1],
  ]);
});

it("counts runs by how they end, and their bytes", async () => {
  const { metrics, store } = observeStore();
  const { add, until, runner } = createRunnerHarness({
    store,
    observer: metrics.run,
    resolver: createTestResolver(async (url) => {
      if (url.pathname === "/gone") throw new ServiceError("upstream_status", "gone");
      if (url.pathname === "/busy") throw new ServiceError("upstream_timeout", "busy");
      return pageOf(url);
    }),
    async downloads(job, { onProgress }) {
      for (const downloaded_bytes of [1_000, 1_500, 4_000]) {
        onProgress({ stage: "downloading", downloaded_bytes, total_bytes: 4_000 });
      }
      return writeMedium(job);
    },
  });
  runner.start();
  for (const path of ["/", "/gone", "/busy"]) {
    const { id } = await add(`https://video.example.com${path}`);
    await until(id, path === "/" ? "succeeded" : "failed");
  }
  await runner.stop();
  const families = await scrape(metrics);
  const ended = families.get("unreel_runs_ended_total")!.samples;
  expect(ended.map(({ labels: { outcome, code }, value }) => [outcome, code, value])).toEqual([
    ["succeeded", "", 1],
    ["failed", "upstream_status", 1],
    ["retried", "upstream_timeout", 2],
    ["failed", "upstream_timeout", 1],
  ]);
  expect(valueOf(families, "unreel_runs_started_total")).toBe(5);
  expect(valueOf(families, "unreel_runs_active")).toBe(0);
  expect(valueOf(families, "unreel_run_duration_seconds_count")).toBe(5);
  expect(valueOf(families, "unreel_downloaded_bytes_total")).toBe(3_000);
});
