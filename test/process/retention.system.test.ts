import { once } from "node:events";
import { existsSync, readdirSync, statSync, unlinkSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import type { Task } from "../../src/model/task.ts";
import { resource } from "../media/resources.ts";
import { openDatabase } from "../postgres/database.ts";
import type { TaskClient } from "./download-client.ts";
import { film, openSite } from "./film-site.ts";
import { paddedFilm } from "./padded-film.ts";
import { collectLog } from "./service.ts";
import { clientOf, openTestCluster } from "./test-cluster.ts";

/** Much more than the buffers of a connection hold. */
const longFilm = paddedFilm(20 * 1024 * 1024);

describe("a file that a slow client still receives", () => {
  it.each([
    ["one process", async () => "sqlite:", ["all"]],
    ["an api and two workers", openDatabase, ["api", "worker", "worker"]],
  ] as const)("is left when newer ones need its space; the next one goes: %s", async (_name, storeUrl, roles) => {
    const site = await openSite();
    site.resources.set("long.mp4", resource("video/mp4", longFilm));
    // The client reads nothing during two downloads, which take minutes on a busy machine.
    const limit = { MAX_STORED_BYTES: `${2 * longFilm.length + 100}`, SEND_TIMEOUT_S: "600" };
    const cluster = openTestCluster(await storeUrl(), limit);
    const first = await cluster.start(roles[0]);
    const others = [];
    for (const role of roles.slice(1)) others.push(await cluster.start(role));
    const logs = [first, ...others].map(collectLog);
    const client = await clientOf(first);
    const run = async () => client.ended((await client.post(site.url("long.mp4"))).id);
    const served = await run();
    const response = await startReading(`${first.url}/tasks/${served.id}/file`);

    const [second, third] = [await run(), await run()];
    expect(await client.get(served.id)).toMatchObject({ removed_at: null, file: served.file });
    expect(await client.get(second.id)).toMatchObject({ state: "succeeded", file: null });
    expect(third.file).not.toBeNull();
    expect(sizesIn(cluster.dataDir)).toEqual([longFilm.length, longFilm.length]);
    expect((await client.file(second.id)).status).toBe(410);
    expect((await buffer(response)).equals(longFilm)).toBe(true);
    const lines = logs.flat().filter(({ msg }) => /MAX_STORED_BYTES/.test(String(msg)));
    expect(lines).toMatchObject([{ files: 1, bytes: longFilm.length }]);
  });
});

it("a removal that a kill -9 left half done is completed by the next start", async () => {
  const site = await openSite();
  const cluster = openTestCluster("sqlite:");
  const before = await cluster.start("all");
  const tasks: Task[] = [];
  const client = await clientOf(before);
  for (let n = 0; n < 3; n += 1) tasks.push(await client.ended((await client.post(site.url("film.mp4"))).id));
  await before.end("SIGKILL");
  const [oldest, ...others] = tasks.map(({ id }) => id);
  unlinkSync(join(cluster.dataDir, "files", oldest!));

  const limit = { MAX_STORED_BYTES: `${2 * film.length}` };
  const next = await clientOf(await cluster.start("all", limit));
  await expect.poll(async () => (await next.get(oldest!)).removed_at).not.toBeNull();
  expect((await next.file(oldest!)).status).toBe(410);
  for (const id of others) expect((await next.file(id)).status).toBe(200);
});

it("files and records agree, and are within the limit, after the service was killed again and again", async () => {
  const site = await openSite();
  const limit = { MAX_STORED_BYTES: `${5 * film.length}`, CONCURRENCY_PER_HOST: "3" };
  const cluster = openTestCluster("sqlite:", limit);
  let service = await cluster.start("all");
  let client = await clientOf(service);
  const ids: string[] = [];
  for (let n = 0; n < 14; n += 1) ids.push((await client.post(site.url("film.mp4"))).id);
  for (let kills = 1; kills <= 2; kills += 1) {
    await client.ended(ids[6 * kills]!);
    expect(storedBytes(await client.list())).toBeLessThanOrEqual(5 * film.length);
    await service.end("SIGKILL");
    service = await cluster.start("all");
    client = await clientOf(service);
  }
  for (const id of ids) expect(await client.ended(id)).toMatchObject({ state: "succeeded" });
  const kept = await stored(client);
  expect(kept).toHaveLength(5);
  expect(readdirSync(join(cluster.dataDir, "files")).toSorted()).toEqual(kept);
});

/** Begins to read a response, of which the client then takes no more. */
async function startReading(url: string): Promise<IncomingMessage> {
  const [response] = (await once(get(url), "response")) as [IncomingMessage];
  await once(response, "readable");
  return response;
}

/** Ids of the tasks that have a file. */
async function stored(client: TaskClient): Promise<string[]> {
  const tasks = await client.list();
  return tasks
    .filter(({ file }) => file !== null)
    .map(({ id }) => id)
    .toSorted();
}

function storedBytes(tasks: readonly Task[]): number {
  return tasks.reduce((sum, { file }) => sum + (file?.size ?? 0), 0);
}

function sizesIn(dataDir: string): number[] {
  const folder = join(dataDir, "files");
  if (!existsSync(folder)) return [];
  return readdirSync(folder).map((name) => statSync(join(folder, name)).size);
}
