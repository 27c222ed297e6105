import { expect, it } from "vitest";
import { openDatabase } from "../postgres/database.ts";
import { createRandom } from "./crash-download.ts";
import { film, openSite } from "./film-site.ts";
import { killWorkers } from "./kill-workers.ts";
import { clientOf, openTestCluster } from "./test-cluster.ts";
import { watchVisits } from "./visits.ts";

// It mostly waits, as the next one does.
it.concurrent("a killed worker's download resumes on another worker", async ({ onTestFinished }) => {
  const random = createRandom(1);
  const storeUrl = await openDatabase(onTestFinished);
  const [report] = await killWorkers({ storeUrl, kills: 1, random });
  expect(report).toMatchObject({ isRight: true, mostAtOnce: 1 });
});

it.concurrent("every api process serves the file that a worker downloaded", async ({ onTestFinished }) => {
  const site = await openSite({}, onTestFinished);
  const cluster = openTestCluster(await openDatabase(onTestFinished), {}, onTestFinished);
  const [here, there] = [
    await clientOf(await cluster.start("api"), onTestFinished),
    await clientOf(await cluster.start("api"), onTestFinished),
  ];
  await cluster.start("worker");
  const { id } = await here.post(site.url("film.mp4"));
  await there.ended(id);
  for (const client of [here, there]) {
    expect(film.equals(await (await client.file(id)).bytes())).toBe(true);
  }
});

it("a run ends at a cancel or delete through another process, not at its next heartbeat", async () => {
  const site = await openSite({ bytesPerSecond: film.length / 60 });
  const cluster = openTestCluster(await openDatabase(), { HEARTBEAT_S: "3600" });
  const client = await clientOf(await cluster.start("api"));
  await cluster.start("worker");
  for (const [method, path] of [
    ["POST", "/cancel"],
    ["DELETE", ""],
  ] as const) {
    const visits = watchVisits(site, "film.mp4");
    const { id } = await client.post(site.url("film.mp4"));
    await site.until(() => visits.requests > 0);
    expect(await client.request(method, id, path)).toBeLessThan(300);
    await visits.closed();
  }
});
