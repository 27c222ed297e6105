import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { startCuttingProxy } from "../postgres/cutting-proxy.ts";
import { openDatabase } from "../postgres/database.ts";
import { type Cluster, openCluster } from "./cluster.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import { film, openSite } from "./film-site.ts";
import { type ServiceProcess, startRefused } from "./service.ts";
import { watchVisits } from "./visits.ts";

interface Place extends Cluster {
  storeUrl: string;
  /** Ids in the data folder that have parts, and ids that have a result. */
  parts(): string[];
  results(): string[];
}

async function openPlace(env: Record<string, string> = {}): Promise<Place> {
  const storeUrl = await openDatabase();
  const dataDir = mkdtempSync(join(tmpdir(), "unreel-roles-"));
  const cluster = openCluster(storeUrl, { DATA_DIR: dataDir, ...env });
  onTestFinished(async () => {
    await cluster[Symbol.asyncDispose]();
    rmSync(dataDir, { recursive: true });
  });
  const names = (kind: string) => {
    const path = join(dataDir, kind);
    return existsSync(path) ? readdirSync(path) : [];
  };
  return { ...cluster, storeUrl, parts: () => names("parts"), results: () => names("files") };
}

async function clientOf({ url }: ServiceProcess): Promise<TaskClient> {
  const client = await openTaskClient(url);
  onTestFinished(() => client.close());
  return client;
}

/** The lines of the process's log from now on. */
function logOf({ process }: ServiceProcess): Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = [];
  let rest = "";
  process.stdout!.on("data", (chunk: string) => {
    const [...whole] = (rest + chunk).split("\n");
    rest = whole.pop() ?? "";
    lines.push(...whole.map((line) => JSON.parse(line) as Record<string, unknown>));
  });
  return lines;
}

it.each([{ ROLE: "api" }, { ROLE: "worker", STORE_URL: "memory:" }])(
  "%o: a store that cannot be shared refuses the start with one line",
  async (env) => {
    const { code, stderr } = await startRefused(env);
    const line = `unreel: ROLE must be all unless STORE_URL begins with postgres:, got "${env.ROLE}"\n`;
    expect([code, stderr]).toEqual([1, line]);
  },
);

it("takes tasks where it is an api, and runs them where it is a worker", async () => {
  const site = await openSite();
  const visits = watchVisits(site, "film.mp4");
  const place = await openPlace();
  const client = await clientOf(await place.start("api"));
  const { id } = await client.post(site.url("film.mp4"));
  const worker = await place.start("worker");
  expect(await client.ended(id)).toMatchObject({ state: "succeeded", attempts: 1 });
  expect([...visits.firsts.keys()]).toEqual([worker.process.pid]);
  for (const [path, status] of [
    ["/health/live", 200],
    ["/health/ready", 200],
    ["/tasks/", 404],
    [`/tasks/${id}/file`, 404],
  ] as const) {
    expect((await fetch(worker.url + path)).status).toBe(status);
  }
  expect(await worker.end("SIGTERM")).toEqual({ code: 0, signal: null });
});

describe("the files that several processes share", () => {
  it("stay where a worker that starts finds a task that another one runs", async () => {
    const site = await openSite({ bytesPerSecond: film.length });
    const visits = watchVisits(site, "film.mp4");
    const place = await openPlace();
    const client = await clientOf(await place.start("api"));
    await place.start("worker");
    const { id } = await client.post(site.url("film.mp4"));
    await site.until(() => site.sent > 0);
    await place.start("worker");
    expect(place.parts()).toEqual([id]);
    expect(await client.ended(id)).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(film.equals(await (await client.file(id)).bytes())).toBe(true);
    expect(visits.firsts.size).toBe(1);
  });

  it("go with a task that is deleted through an api, while it runs and when it has ended", async () => {
    const site = await openSite();
    const place = await openPlace();
    const client = await clientOf(await place.start("api"));
    const done = await client.post(site.url("film.mp4"));
    await Promise.all([place.start("worker"), place.start("worker")]);
    await client.ended(done.id);
    site.answer("film.mp4", (response) =>
      response.writeHead(200, { "content-type": "video/mp4" }).write(film.subarray(0, 9)),
    );
    const running = await client.post(site.url("film.mp4"));
    await expect.poll(() => place.parts()).toEqual([running.id]);
    for (const { id } of [done, running]) expect(await client.order("DELETE", id)).toBe(204);
    await expect.poll(() => [place.parts(), place.results()]).toEqual([[], []]);
  });

  it("go with a task past its retention, whichever worker sees it first", async () => {
    const site = await openSite();
    const place = await openPlace({ RETENTION_S: "1" });
    const client = await clientOf(await place.start("api"));
    const workers = await Promise.all([place.start("worker"), place.start("worker")]);
    const logs = workers.map(logOf);
    const posted = await Promise.all(
      Array.from({ length: 6 }, () => client.post(site.url("film.mp4"))),
    );
    for (const { id } of posted) await client.ended(id);
    await expect.poll(() => client.list(), { timeout: 10_000 }).toEqual([]);
    expect(place.results()).toEqual([]);
    expect(logs.flat().filter(({ level }) => Number(level) > 30)).toEqual([]);
  });
});

it("runs a task in one worker at a time, where one is cut off from the database", async () => {
  const site = await openSite({ bytesPerSecond: film.length / 40 });
  const visits = watchVisits(site, "film.mp4");
  await using proxy = await startCuttingProxy(inject("postgresUrl"));
  const place = await openPlace();
  const client = await clientOf(await place.start("api"));
  const { pathname } = new URL(place.storeUrl);
  const lonely = await place.start("worker", { STORE_URL: proxy.url(pathname.slice(1)) });
  const log = logOf(lonely);
  const { id } = await client.post(site.url("film.mp4"));
  await site.until(() => site.sent > 0);
  await place.start("worker");
  const startMs = performance.now();
  proxy.stall();
  await site.until(() => visits.firsts.size === 2);
  expect(performance.now() - startMs).toBeLessThan(20_000);
  expect(visits.mostAtOnce).toBe(1);
  const failed = "claiming tasks failed; retrying every second";
  const restored = "claiming tasks works again";
  const messages = () => log.map(({ msg }) => msg);
  await expect.poll(messages, { timeout: 20_000 }).toContain(failed);
  proxy.restore();
  await expect.poll(messages, { timeout: 20_000 }).toContain(restored);
  expect(messages().filter((message) => message === failed)).toHaveLength(1);
  expect(await client.order("POST", id, "/cancel")).toBe(200);
}, 90_000);
