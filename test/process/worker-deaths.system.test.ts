import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { readMediaFixtures } from "../media/media-fixtures.ts";
import { resource } from "../media/resources.ts";
import type { WhenOver } from "../media/test-site.ts";
import { startCuttingProxy } from "../postgres/cutting-proxy.ts";
import { openDatabase } from "../postgres/database.ts";
import type { TaskClient } from "./download-client.ts";
import { openSite } from "./film-site.ts";
import { startHeldSite } from "./held-site.ts";
import { openLiveSite } from "./live-site.ts";
import { paddedFilm } from "./padded-film.ts";
import { hasRecorded, picturesOf } from "./recording.ts";
import { collectLog } from "./service.ts";
import { openStreamReader, type StreamReader } from "./stream-client.ts";
import { clientOf, openTestCluster } from "./test-cluster.ts";
import { watchVisits } from "./visits.ts";

const film = paddedFilm(3_000_000);

/** Opens a site whose film takes five minutes: far longer than what is to happen meanwhile, also on a slow machine. */
async function openSlowSite(whenOver?: WhenOver) {
  const site = await openSite({ bytesPerSecond: film.length / 300 }, whenOver);
  site.resources.set("long.mp4", resource("video/mp4", film));
  return { site, url: site.url("long.mp4"), visits: watchVisits(site, "long.mp4") };
}

describe("a worker that is killed", () => {
  const opened = new AsyncDisposableStack();
  let client: TaskClient;
  let live: Awaited<ReturnType<typeof openLiveSite>>;
  let visits: ReturnType<typeof watchVisits>;
  let [downloaded, recorded, streamUrl]: string[] = [];
  let stream: StreamReader;
  let [finishing, streamEnd]: unknown[] = [];

  // One death for all: the others wait until it is noticed.
  beforeAll(async () => {
    const whenOver = (end: () => PromiseLike<void> | void) => opened.defer(end);
    const cluster = openTestCluster(await openDatabase(whenOver), { CONCURRENCY_PER_HOST: "3" }, whenOver);
    const api = await cluster.start("api");
    client = await clientOf(api, whenOver);
    const worker = await cluster.start("worker");

    const fixture = readMediaFixtures().get("HLS in MPEG-TS with B-frames")!;
    const held = await startHeldSite(fixture, whenOver);
    streamUrl = `${api.url}/download?url=${encodeURIComponent(held.site.url(fixture.entry))}`;
    stream = await openStreamReader(streamUrl);
    await stream.untilMedia();

    const slow = await openSlowSite(whenOver);
    ({ visits } = slow);
    ({ id: downloaded } = await client.post(slow.url));
    await client.until(downloaded, ({ progress }) => (progress?.downloaded_bytes ?? 0) > 0);

    live = await openLiveSite(whenOver);
    live.list(0, 3);
    ({ id: recorded } = await client.post(live.url));
    await client.until(recorded, hasRecorded(live.bytes(3)));

    await worker.end("SIGKILL");
    finishing = await client.request("POST", recorded, "/finish");
    live.list(3, 6);
    streamEnd = await stream.all().catch((error: unknown) => error);
    held.release();
    slow.site.bytesPerSecond = Infinity;
    await cluster.start("worker");
  });
  afterAll(() => opened.disposeAsync());

  it("breaks off the stream of its file, which another one sends from the start", async () => {
    expect(streamEnd).toMatchObject({ message: "terminated" });
    const whole = await (await openStreamReader(streamUrl!)).all();
    expect(whole.subarray(0, stream.bytes.length).equals(stream.bytes)).toBe(true);
    expect(whole.length).toBeGreaterThan(stream.bytes.length);
  });

  it("loses no download: another one resumes it", async () => {
    expect(await client.ended(downloaded!)).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(film.equals(await (await client.file(downloaded!)).bytes())).toBe(true);
    expect([visits.firsts.size, visits.mostAtOnce]).toEqual([2, 1]);
  });

  it("loses no recording that is to finish: another one finishes it with what there is", async () => {
    expect(finishing).toBe(200);
    expect(await client.ended(recorded!)).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(await picturesOf(client, recorded!)).toBe(75);
  });
});

it("a task runs in one worker at a time when a worker loses its connection to the database", async () => {
  const { site, url, visits } = await openSlowSite();
  await using proxy = await startCuttingProxy(inject("postgresUrl"));
  const storeUrl = await openDatabase();
  const cluster = openTestCluster(storeUrl);
  const client = await clientOf(await cluster.start("api"));
  const { pathname } = new URL(storeUrl);
  const disconnected = await cluster.start("worker", { STORE_URL: proxy.url(pathname.slice(1)) });
  const log = collectLog(disconnected);
  const { id } = await client.post(url);
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
