import { expect, it, onTestFinished } from "vitest";
import { openDatabase } from "../postgres/database.ts";
import { type Cluster, openCluster, type Role } from "./cluster.ts";
import { createRandom } from "./crash-download.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import { film, openSite } from "./film-site.ts";
import { killWorkers } from "./kill-workers.ts";
import { watchVisits } from "./visits.ts";

it("goes on with a killed worker's download on another one within 15 s", async () => {
  const random = createRandom(1);
  const [report] = await killWorkers({ storeUrl: await openDatabase(), kills: 1, random });
  expect(report).toMatchObject({ isRight: true, mostAtOnce: 1 });
  expect(report?.seconds).toBeLessThan(15);
}, 60_000);

async function openService(): Promise<Cluster> {
  const cluster = openCluster(await openDatabase());
  onTestFinished(() => cluster[Symbol.asyncDispose]());
  return cluster;
}

async function clientOf(cluster: Cluster, role: Role): Promise<TaskClient> {
  const { url } = await cluster.start(role);
  const client = await openTaskClient(url);
  onTestFinished(() => client.close());
  return client;
}

it("answers with the file that a worker downloaded, from every API process", async () => {
  const site = await openSite();
  const cluster = await openService();
  const here = await clientOf(cluster, "api");
  const there = await clientOf(cluster, "api");
  await cluster.start("worker");
  const { id } = await here.post(site.url("film.mp4"));
  await there.ended(id);
  for (const client of [here, there]) {
    const bytes = await (await client.file(id)).bytes();
    expect(film.equals(bytes)).toBe(true);
  }
});

it.each(["cancel", "delete"] as const)(
  "ends a run within a second of a %s through another process",
  async (order) => {
    const site = await openSite({ bytesPerSecond: film.length / 60 });
    const visits = watchVisits(site, "film.mp4");
    const cluster = await openService();
    const client = await clientOf(cluster, "api");
    await cluster.start("worker");
    const { id } = await client.post(site.url("film.mp4"));
    await site.until(() => site.sent > 0);
    const startMs = performance.now();
    const status =
      order === "cancel"
        ? await client.order("POST", id, "/cancel")
        : await client.order("DELETE", id);
    expect(status).toBeLessThan(300);
    await visits.over();
    expect(performance.now() - startMs).toBeLessThan(1_000);
  },
);
