import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openDatabase } from "../postgres/database.ts";
import type { Cluster, Role } from "./cluster.ts";
import type { TaskClient } from "./download-client.ts";
import { film, openSite } from "./film-site.ts";
import { openLiveSite } from "./live-site.ts";
import { hasRecorded, picturesOf } from "./recording.ts";
import { collectLog, type ServiceProcess } from "./service.ts";
import { openStreamReader } from "./stream-client.ts";
import { clientOf, openTestCluster } from "./test-cluster.ts";
import { watchVisits } from "./visits.ts";

describe("two api processes and two workers", () => {
  const opened = new AsyncDisposableStack();
  let cluster: Cluster;
  let workers: ServiceProcess[];
  let api: ServiceProcess;
  let [here, there]: TaskClient[] = [];

  beforeAll(async () => {
    const whenOver = (end: () => PromiseLike<void> | void) => opened.defer(end);
    // No run ends because of a heartbeat.
    cluster = openTestCluster(await openDatabase(whenOver), { HEARTBEAT_S: "3600" }, whenOver);
    const start = (role: Role) => cluster.start(role);
    const apis = await Promise.all([start("api"), start("api")]);
    workers = await Promise.all([start("worker"), start("worker")]);
    api = apis[0];
    [here, there] = await Promise.all(apis.map((each) => clientOf(each, whenOver)));
  });
  afterEach(async () => {
    for (const { id } of await here!.list()) await here!.request("DELETE", id);
  });
  afterAll(() => opened.disposeAsync());

  it("take tasks in one and run them in another, each with the routes of its role", async () => {
    const site = await openSite();
    const visits = watchVisits(site, "film.mp4");
    const { id } = await here!.post(site.url("film.mp4"));
    expect(await there!.ended(id)).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(visits.firsts.size).toBe(1);
    expect(workers.map(({ process: { pid } }) => pid)).toEqual(expect.arrayContaining([...visits.firsts.keys()]));
    for (const [path, status] of [
      ["/health/live", 200],
      ["/health/ready", 200],
      ["/tasks/", 404],
      [`/tasks/${id}/file`, 404],
    ] as const) {
      expect((await fetch(workers[0]!.url + path)).status).toBe(status);
    }
  });

  it("serve in each api process the file that a worker downloaded", async () => {
    const site = await openSite();
    const { id } = await here!.post(site.url("film.mp4"));
    await there!.ended(id);
    for (const client of [here!, there!]) {
      expect(film.equals(await (await client.file(id)).bytes())).toBe(true);
    }
  });

  it("stream a file from an api process while a worker downloads it", async () => {
    const site = await openSite();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const half = film.length >> 1;
    site.answer("film.mp4", async (response, serve, { headers }) => {
      if (headers.range !== undefined) return serve();
      response.writeHead(200, { "content-type": "video/mp4", "content-length": film.length });
      response.write(film.subarray(0, half));
      await released;
      response.end(film.subarray(half));
    });
    const url = `${api.url}/download?url=${encodeURIComponent(site.url("film.mp4"))}`;
    const reader = await openStreamReader(url);
    await reader.until(half);
    const late = await openStreamReader(url);
    release();
    for (const each of [reader, late]) expect(film.equals(await each.all())).toBe(true);
  });

  it("end a run at a cancel or delete through another process, not at its next heartbeat", async () => {
    const site = await openSite({ bytesPerSecond: film.length / 60 });
    for (const [method, path] of [
      ["POST", "/cancel"],
      ["DELETE", ""],
    ] as const) {
      const visits = watchVisits(site, "film.mp4");
      const { id } = await here!.post(site.url("film.mp4"));
      await site.until(() => visits.requests > 0);
      expect(await here!.request(method, id, path)).toBeLessThan(300);
      await visits.closed();
    }
  });

  it("remove files with a task that is deleted through an api process, running or ended", async () => {
    const site = await openSite();
    const done = await here!.ended((await here!.post(site.url("film.mp4"))).id);
    site.answer("film.mp4", (response) =>
      response.writeHead(200, { "content-type": "video/mp4" }).write(film.subarray(0, 9)),
    );
    const running = await here!.post(site.url("film.mp4"));
    const parts = () => namesIn(cluster.dataDir, "parts");
    await expect.poll(parts).toEqual([running.id]);
    for (const { id } of [done, running]) expect(await here!.request("DELETE", id)).toBe(204);
    await expect.poll(() => [parts(), namesIn(cluster.dataDir, "files")]).toEqual([[], []]);
  });

  it("end a recording with what there is when an api process is asked to finish it", async () => {
    const live = await openLiveSite();
    live.list(0, 3);
    const { id } = await here!.post(live.url);
    await here!.until(id, hasRecorded(live.bytes(3)));
    expect(await here!.request("POST", id, "/finish")).toBe(200);
    expect(await here!.ended(id)).toMatchObject({ state: "succeeded", file: { warnings: [] } });
    expect(await picturesOf(here!, id)).toBe(75);
    expect(await here!.request("POST", id, "/finish")).toBe(409);
  });

  it("keep the files of a task that one runs when another worker starts", async () => {
    const site = await openSite({ bytesPerSecond: film.length / 60 });
    const visits = watchVisits(site, "film.mp4");
    const { id } = await here!.post(site.url("film.mp4"));
    await site.until(() => site.sent > 0);
    const third = await cluster.start("worker");
    expect(namesIn(cluster.dataDir, "parts")).toEqual([id]);
    site.bytesPerSecond = Infinity;
    expect(await here!.ended(id)).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(film.equals(await (await here!.file(id)).bytes())).toBe(true);
    expect(visits.firsts.size).toBe(1);
    expect(await third.end("SIGTERM")).toEqual({ code: 0, signal: null });
  });
});

it("the files of tasks past their retention are removed, without an error in any of two workers", async () => {
  const site = await openSite();
  const cluster = openTestCluster(await openDatabase(), { RETENTION_S: "1" });
  const client = await clientOf(await cluster.start("api"));
  const workers = await Promise.all([cluster.start("worker"), cluster.start("worker")]);
  const logs = workers.map(collectLog);
  const posted = await Promise.all(Array.from({ length: 6 }, () => client.post(site.url("film.mp4"))));
  for (const { id } of posted) await client.ended(id);
  await expect.poll(() => client.list()).toEqual([]);
  expect(namesIn(cluster.dataDir, "files")).toEqual([]);
  expect(logs.flat().filter(({ level }) => Number(level) > 30)).toEqual([]);
});

/** Returns the task ids that have a folder of parts, or a result, in the data folder. */
function namesIn(dataDir: string, kind: "parts" | "files"): string[] {
  const path = join(dataDir, kind);
  return existsSync(path) ? readdirSync(path) : [];
}
