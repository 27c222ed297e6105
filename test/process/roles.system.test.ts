import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, inject, it } from "vitest";
import { readExhibits } from "../media/media-fixtures.ts";
import { startCuttingProxy } from "../postgres/cutting-proxy.ts";
import { openDatabase } from "../postgres/database.ts";
import { film, openSite } from "./film-site.ts";
import { startHeldSite } from "./held-site.ts";
import { collectLog, startRefused } from "./service.ts";
import { openStreamReader } from "./stream-client.ts";
import { clientOf, openTestCluster } from "./test-cluster.ts";
import { watchVisits } from "./visits.ts";

it.for([{ ROLE: "api" }, { ROLE: "worker", STORE_URL: "memory:" }])(
  "%o: a store that cannot be shared refuses the start with one line",
  async (env, { expect }) => {
    const { code, stderr } = await startRefused(env);
    const line = `unreel: ROLE must be all unless STORE_URL begins with postgres:, got "${env.ROLE}"\n`;
    expect([code, stderr]).toEqual([1, line]);
  },
);

it.concurrent("an api process takes tasks, and a worker process runs them", async ({ expect, onTestFinished }) => {
  const site = await openSite({}, onTestFinished);
  const visits = watchVisits(site, "film.mp4");
  const cluster = openTestCluster(await openDatabase(onTestFinished), {}, onTestFinished);
  const client = await clientOf(await cluster.start("api"), onTestFinished);
  const { id } = await client.post(site.url("film.mp4"));
  const worker = await cluster.start("worker");
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

describe.concurrent("the files that several processes share", () => {
  it("are streamed by an api process while a worker process downloads them", async ({ expect, onTestFinished }) => {
    const site = await openSite({}, onTestFinished);
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const half = film.length >> 1;
    site.answer("film.mp4", async (response, serve, { headers }) => {
      if (headers.range !== undefined) return serve();
      response.writeHead(200, { "content-type": "video/mp4", "content-length": film.length });
      response.write(film.subarray(0, half));
      await released;
      response.end(film.subarray(half));
    });
    const cluster = openTestCluster(await openDatabase(onTestFinished), {}, onTestFinished);
    const api = await cluster.start("api");
    await cluster.start("worker");
    const reader = await openStreamReader(`${api.url}/download?url=${encodeURIComponent(site.url("film.mp4"))}`);
    await reader.until(half);
    const late = await openStreamReader(`${api.url}/download?url=${encodeURIComponent(site.url("film.mp4"))}`);
    release();
    for (const each of [reader, late]) expect(film.equals(await each.all())).toBe(true);
  });

  it("are streamed no further than the life of their worker, and from the start once another one runs", async ({
    expect,
    onTestFinished,
  }) => {
    const fixture = readExhibits().get("HLS in MPEG-TS with B-frames")!;
    const { site, release } = await startHeldSite(fixture);
    onTestFinished(() => site.close());
    const cluster = openTestCluster(await openDatabase(onTestFinished), {}, onTestFinished);
    const api = await cluster.start("api");
    const worker = await cluster.start("worker");
    const url = `${api.url}/download?url=${encodeURIComponent(site.url(fixture.entry))}`;
    const reader = await openStreamReader(url);
    await reader.untilMedia();
    await worker.end("SIGKILL");
    await expect(reader.all()).rejects.toThrow("terminated");
    release();
    await cluster.start("worker");
    const whole = await (await openStreamReader(url)).all();
    expect(whole.subarray(0, reader.bytes.length).equals(reader.bytes)).toBe(true);
    expect(whole.length).toBeGreaterThan(reader.bytes.length);
  });

  it("are kept when a worker starts while another one runs their task", async ({ expect, onTestFinished }) => {
    const site = await openSite({ bytesPerSecond: film.length / 60 }, onTestFinished);
    const visits = watchVisits(site, "film.mp4");
    const cluster = openTestCluster(await openDatabase(onTestFinished), {}, onTestFinished);
    const client = await clientOf(await cluster.start("api"), onTestFinished);
    await cluster.start("worker");
    const { id } = await client.post(site.url("film.mp4"));
    await site.until(() => site.sent > 0);
    await cluster.start("worker");
    expect(namesIn(cluster.dataDir, "parts")).toEqual([id]);
    site.bytesPerSecond = Infinity;
    expect(await client.ended(id)).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(film.equals(await (await client.file(id)).bytes())).toBe(true);
    expect(visits.firsts.size).toBe(1);
  });

  it("are removed with a task that is deleted through an api process, running or ended", async ({
    expect,
    onTestFinished,
  }) => {
    const site = await openSite({}, onTestFinished);
    const cluster = openTestCluster(await openDatabase(onTestFinished), {}, onTestFinished);
    const client = await clientOf(await cluster.start("api"), onTestFinished);
    const done = await client.post(site.url("film.mp4"));
    await Promise.all([cluster.start("worker"), cluster.start("worker")]);
    await client.ended(done.id);
    site.answer("film.mp4", (response) =>
      response.writeHead(200, { "content-type": "video/mp4" }).write(film.subarray(0, 9)),
    );
    const running = await client.post(site.url("film.mp4"));
    const parts = () => namesIn(cluster.dataDir, "parts");
    await expect.poll(parts).toEqual([running.id]);
    for (const { id } of [done, running]) expect(await client.request("DELETE", id)).toBe(204);
    await expect.poll(() => [parts(), namesIn(cluster.dataDir, "files")]).toEqual([[], []]);
  });

  it("are removed with a task past its retention, without an error in any worker", async ({
    expect,
    onTestFinished,
  }) => {
    const site = await openSite({}, onTestFinished);
    const cluster = openTestCluster(await openDatabase(onTestFinished), { RETENTION_S: "1" }, onTestFinished);
    const client = await clientOf(await cluster.start("api"), onTestFinished);
    const workers = await Promise.all([cluster.start("worker"), cluster.start("worker")]);
    const logs = workers.map(collectLog);
    const posted = await Promise.all(Array.from({ length: 6 }, () => client.post(site.url("film.mp4"))));
    for (const { id } of posted) await client.ended(id);
    await expect.poll(() => client.list()).toEqual([]);
    expect(namesIn(cluster.dataDir, "files")).toEqual([]);
    expect(logs.flat().filter(({ level }) => Number(level) > 30)).toEqual([]);
  });
});

it.concurrent("a task runs in one worker at a time when a worker loses its connection to the database", async ({
  expect,
  onTestFinished,
}) => {
  const site = await openSite({ bytesPerSecond: film.length / 40 }, onTestFinished);
  const visits = watchVisits(site, "film.mp4");
  await using proxy = await startCuttingProxy(inject("postgresUrl"));
  const storeUrl = await openDatabase(onTestFinished);
  const cluster = openTestCluster(storeUrl, {}, onTestFinished);
  const client = await clientOf(await cluster.start("api"), onTestFinished);
  const { pathname } = new URL(storeUrl);
  const disconnected = await cluster.start("worker", { STORE_URL: proxy.url(pathname.slice(1)) });
  const log = collectLog(disconnected);
  const { id } = await client.post(site.url("film.mp4"));
  await site.until(() => site.sent > 0);
  await cluster.start("worker");
  proxy.stall();
  await site.until(() => visits.firsts.size === 2);
  expect(visits.mostAtOnce).toBe(1);
  const failed = "claiming tasks failed; retrying every second";
  const restored = "claiming tasks works again";
  const messages = () => log.map(({ msg }) => msg);
  await expect.poll(messages).toContain(failed);
  proxy.restore();
  await expect.poll(messages).toContain(restored);
  expect(messages().filter((message) => message === failed)).toHaveLength(1);
  expect(await client.request("POST", id, "/cancel")).toBe(200);
});

/** Returns the task ids that have a folder of parts, or a result, in the data folder. */
function namesIn(dataDir: string, kind: "parts" | "files"): string[] {
  const path = join(dataDir, kind);
  return existsSync(path) ? readdirSync(path) : [];
}
