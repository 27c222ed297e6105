import { afterAll, beforeAll, expect, it } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { u32 } from "../../src/remux/mp4/boxes.ts";
import { buildMp4, emptyRun, maxCount } from "../media/hostile-mp4.ts";
import { resource } from "../media/resources.ts";
import { type Site, startSite } from "../media/site.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import { film } from "./film-site.ts";
import { type ServiceProcess, startService } from "./service.ts";

const manyCompositions = u32(1000, ...Array.from({ length: 1000 }, () => [maxCount, 5]).flat());
const hostile = new Map([
  ["leap.mp4", buildMp4({ codec: "sowt", runs: u32(2, 1, 1, 1, maxCount, 1, 1) })],
  ["samples.mp4", buildMp4({ codec: "sowt", sizes: u32(2, maxCount) })],
  ["composition.mp4", buildMp4({ compositions: u32(1, maxCount, 5) })],
  ["compositions.mp4", buildMp4({ compositions: manyCompositions })],
  ["fragment.mp4", buildMp4({ after: [emptyRun(maxCount)] })],
]);

const dataDir = makeSharedFolder();
let site: Site;
let service: ServiceProcess;
let client: TaskClient;

beforeAll(async () => {
  site = await startSite(new Map([["film.mp4", resource("video/mp4", film)]]));
  for (const [name, bytes] of hostile) site.resources.set(name, resource("video/mp4", bytes));
  service = await startService({
    DATA_DIR: dataDir,
    ALLOW_NETWORKS: "127.0.0.1/32",
    MIN_FREE_BYTES: "0",
    CONCURRENCY: "4",
    CONCURRENCY_PER_HOST: "4",
  });
  client = await openTaskClient(service.url);
});
afterAll(async () => {
  client.close();
  await service.end("SIGTERM");
  await site.close();
});

it("hostile files fail for good, one by one, while the same process completes good tasks beside them", async () => {
  const names = [...hostile.keys()];
  const tasks = names.map(async (name) => client.ended((await client.post(site.url(name))).id));
  const good = await client.ended((await client.post(site.url("film.mp4"))).id);
  expect(good).toMatchObject({ state: "succeeded" });
  const ended = await Promise.all(tasks);
  const failed = {
    state: "failed",
    attempts: 1,
    error: { code: "upstream_invalid", retryable: false },
  };
  expect(Object.fromEntries(ended.map((task, i) => [names[i], task]))).toMatchObject(
    Object.fromEntries(names.map((name) => [name, failed])),
  );
  const next = await client.ended((await client.post(site.url("film.mp4"))).id);
  expect(next).toMatchObject({ state: "succeeded" });
  expect(service.process.exitCode).toBeNull();
});
