import { expect, it } from "vitest";
import { readMedium } from "../media/rendition.ts";
import { resource } from "../media/resources.ts";
import { startTestSite } from "../media/test-site.ts";
import { openDatabase } from "../postgres/database.ts";
import { openCluster } from "./cluster.ts";
import { clientOf } from "./test-cluster.ts";
import type { ServiceProcess } from "./service.ts";
import { startTestService } from "./test-service.ts";
import { watchVisits } from "./visits.ts";
import { makeFolder } from "../folder.ts";

const longMs = "60000";

async function start(dataDir: string, DRAIN_MS: string): Promise<ServiceProcess> {
  return startTestService({ DATA_DIR: dataDir, CONCURRENCY: "0", DRAIN_MS });
}

function post({ url }: ServiceProcess): Promise<Response> {
  return fetch(`${url}/tasks/`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ url: "https://example.com/watch" }),
  });
}

async function readiness({ url }: ServiceProcess): Promise<number> {
  const response = await fetch(`${url}/health/ready`);
  await response.bytes();
  return response.status;
}

it("accepts tasks after SIGTERM while it reports that it is not ready; a second SIGTERM ends it", async () => {
  const service = await start(makeFolder(), longMs);
  expect(await readiness(service)).toBe(200);
  service.process.kill("SIGTERM");
  await expect.poll(() => readiness(service)).toBe(503);
  const created = await post(service);
  expect([created.status, created.headers.get("connection")]).toEqual([201, "close"]);
  // One that comes within half a second is the first one, which npm has passed on.
  const end = () => {
    service.process.kill("SIGTERM");
    return service.process.exitCode ?? service.process.signalCode;
  };
  // It does not wait for what a thread does in a file. One that comes while it exits ends it without its handler.
  await expect.poll(end, { interval: 200 }).toBeOneOf([1, "SIGKILL", "SIGTERM"]);
});

it("fails no request of clients that stop when it is not ready, and loses none of their tasks", async () => {
  // A client may stop that long between two requests.
  const drainMs = 8_000;
  const dataDir = makeFolder();
  const service = await start(dataDir, `${drainMs}`);
  const ids: string[] = [];
  const underLoad = Promise.withResolvers<void>();
  async function visit(): Promise<void> {
    while ((await readiness(service)) === 200) {
      const created = await post(service);
      expect(created.status).toBe(201);
      ids.push(((await created.json()) as { id: string }).id);
      if (ids.length === 20) underLoad.resolve();
    }
  }
  const visits = Promise.all(Array.from({ length: 8 }, visit));
  await Promise.race([underLoad.promise, visits]);
  const startMs = performance.now();
  const ended = service.end("SIGTERM");
  await visits;
  expect(await ended).toEqual({ code: 0, signal: null });
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(drainMs);
  await expect(post(service)).rejects.toThrow("fetch failed");
  const client = await clientOf(await start(dataDir, "0"));
  expect((await client.list()).map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
});

it("hands its tasks to another process at once, while it still responds", async () => {
  const film = readMedium("index-first.mp4");
  const site = await startTestSite(new Map([["film.mp4", resource("video/mp4", film)]]));
  const held = Promise.withResolvers<void>();
  const visits = watchVisits(site, "film.mp4", () => held.promise);
  await using cluster = openCluster(await openDatabase(), { DRAIN_MS: longMs });
  const first = await cluster.start("all");
  const client = await clientOf(first);
  const { id } = await client.post(site.url("film.mp4"));
  await expect.poll(() => visits.firsts.size).toBe(1);
  first.process.kill("SIGTERM");
  const second = await cluster.start("all");
  await expect.poll(() => visits.firsts.size).toBe(2);
  expect(await readiness(first)).toBe(503);
  held.resolve();
  expect(await client.ended(id)).toMatchObject({ state: "succeeded", attempts: 1 });
  expect([...visits.firsts.keys()]).toEqual([first.process.pid, second.process.pid]);
  expect(visits.mostAtOnce).toBe(1);
});
