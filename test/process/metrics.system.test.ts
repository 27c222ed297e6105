import { createServer } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { countSeries, parseExposition, valueOf } from "../metrics/exposition.ts";
import { openDatabase } from "../postgres/database.ts";
import { downloadsOf } from "./child-processes.ts";
import { clientOf } from "./test-cluster.ts";
import { film, openSite } from "./film-site.ts";
import { findFreePort } from "./free-port.ts";
import { addKey, bearer } from "./keys.ts";
import { collectLog, startRefused } from "./service.ts";
import { startTestService } from "./test-service.ts";
import { makeFolder } from "../folder.ts";
import { listen } from "../net/listen.ts";

/** Starts the program with metrics; returns it, its log, and what reads them. */
async function start(env: Record<string, string> = {}) {
  const port = await findFreePort();
  const settings = { DATA_DIR: makeFolder(), ALLOW_NETWORKS: "127.0.0.1/32", MIN_FREE_BYTES: "0" };
  const service = await startTestService({ ...settings, METRICS_PORT: port, ...env });
  const log = collectLog(service);
  const scrape = async () => {
    const response = await fetch(`http://127.0.0.1:${port}/metrics`);
    return parseExposition(await response.text());
  };
  return { service, log, scrape };
}

it("tells of downloads and requests what each part of the service saw", async () => {
  const site = await openSite();
  const { service, log, scrape } = await start({ MAX_ATTEMPTS: "1" });
  const client = await clientOf(service);
  const { id } = await client.post(site.url("film.mp4"));
  expect((await client.ended(id)).state).toBe("succeeded");
  await (await client.file(id)).bytes();
  await fetch(`${service.url}/info?url=http://10.0.0.1/`);
  const families = await scrape();
  const value = (name: string, labels = {}) => valueOf(families, `unreel_${name}`, labels);
  expect(value("tasks", { state: "succeeded" })).toBe(1);
  expect(value("oldest_queued_task_age_seconds")).toBe(0);
  expect(value("runs_ended_total", { outcome: "succeeded" })).toBe(1);
  expect(value("runs_active")).toBe(0);
  expect(value("downloaded_bytes_total")).toBeLessThanOrEqual(film.length);
  expect(value("file_served_bytes_total")).toBe(film.length);
  const created = { method: "POST", route: "/tasks/", status: "201" };
  expect(value("http_requests_total", created)).toBe(1);
  const read = { resolver: "page", outcome: "succeeded" };
  expect(value("resolver_duration_seconds_count", read)).toBe(1);
  expect(value("blocked_addresses_total", { reason: "private" })).toBe(1);
  expect(value("engine_processes")).toBe(1);
  expect(value("store_call_duration_seconds_count", { method: "create" })).toBe(1);
  expect(value("disk_free_bytes")).toBeGreaterThan(0);
  for (const name of ["process_resident_memory_bytes", "nodejs_eventloop_lag_p99_seconds"]) {
    expect(valueOf(families, name)).toBeGreaterThan(0);
  }
  expect(countSeries(families)).toBeLessThan(500);
  const runs = () => log.flatMap(({ msg, task }) => (String(msg).startsWith("run ") ? [[msg, task]] : []));
  expect(runs()).toEqual([
    ["run started", id],
    ["run succeeded", id],
  ]);

  // An engine's process that is killed.
  site.bytesPerSecond = film.length / 60;
  const killed = await client.post(site.url("film.mp4"));
  await client.until(killed.id, ({ progress }) => (progress?.downloaded_bytes ?? 0) > 0);
  for (const pid of downloadsOf(service.process.pid!)) process.kill(pid, "SIGKILL");
  expect((await client.ended(killed.id)).error?.code).toBe("unavailable");
  const later = await scrape();
  expect(valueOf(later, "unreel_engine_deaths_total", { cause: "crash" })).toBe(1);
  expect(valueOf(later, "unreel_engine_processes")).toBe(0);
  const failed = { outcome: "failed", code: "unavailable" };
  expect(valueOf(later, "unreel_runs_ended_total", failed)).toBe(1);
  expect(new Set(runs().map(([, task]) => task))).toEqual(new Set([id, killed.id]));

  // A client that disconnects before its response.
  site.answer("film.mp4", () => {});
  const leaving = new AbortController();
  const asked = site.asked.length;
  const url = `${service.url}/info?url=${encodeURIComponent(site.url("film.mp4"))}`;
  const reading = fetch(url, { signal: leaving.signal }).catch((error: unknown) => error);
  await site.until(() => site.asked.length > asked);
  leaving.abort();
  expect(await reading).toMatchObject({ name: "AbortError" });
  await expect.poll(() => log.some(({ msg }) => msg === "client disconnected")).toBe(true);
  const aborted = { method: "GET", route: "/info", status: "aborted" };
  expect(valueOf(await scrape(), "unreel_http_requests_total", aborted)).toBe(1);
});

it("serves them on the port of the service too, to the key of an admin", async () => {
  const env = { DATA_DIR: makeFolder(), ROLE: "api", STORE_URL: await openDatabase() };
  const root = await addKey(env, "root", "--admin");
  const service = await startTestService(env);
  const url = `${service.url}/metrics`;
  expect((await fetch(url)).status).toBe(401);
  const families = parseExposition(await (await fetch(url, { headers: bearer(root) })).text());
  const refused = { method: "GET", route: "/metrics", status: "401" };
  expect(valueOf(families, "unreel_http_requests_total", refused)).toBe(1);
  expect(countSeries(families)).toBeLessThan(500);
});

it("is served by a worker too, which tells of the tasks in the database", async () => {
  const STORE_URL = await openDatabase();
  const { scrape } = await start({ ROLE: "worker", STORE_URL });
  const families = await scrape();
  expect(valueOf(families, "unreel_tasks", { state: "queued" })).toBe(0);
  expect(valueOf(families, "unreel_runs_active")).toBe(0);
});

it("refuses the start with one line if the port is taken", async () => {
  const taken = createServer();
  const port = await listen(taken);
  onTestFinished(() => void taken.close());
  const env = { DATA_DIR: makeFolder(), METRICS_PORT: String(port) };
  const { code, stderr } = await startRefused(env);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^unreel: cannot listen on METRICS_HOST and METRICS_PORT: [^\n]+\n$/);
});
