import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { tmpdir } from "node:os";
import type { Task } from "../../src/model/task.ts";
import { probe } from "../media/probe.ts";
import { openDatabase } from "../postgres/database.ts";
import type { TaskClient } from "./download-client.ts";
import { openLiveSite } from "./live-site.ts";
import { clientOf, openTestCluster } from "./test-cluster.ts";

it("a recording ends with what there is when another process is asked to finish it", async () => {
  const live = await openLiveSite();
  live.list(0, 3);
  const cluster = openTestCluster(await openDatabase());
  const client = await clientOf(await cluster.start("api"));
  await cluster.start("worker");
  const { id } = await client.post(live.url);
  await client.until(id, hasBytes(live.bytes(3)));
  expect(await client.request("POST", id, "/finish")).toBe(200);
  expect(await client.ended(id)).toMatchObject({ state: "succeeded", file: { warnings: [] } });
  expect(await framesOf(client, id)).toBe(75);
  expect(await client.request("POST", id, "/finish")).toBe(409);
});

it("a recording that is to finish is not lost if its worker is killed before it has", async () => {
  const live = await openLiveSite();
  live.list(0, 3);
  const cluster = openTestCluster(await openDatabase());
  const client = await clientOf(await cluster.start("api"));
  const worker = await cluster.start("worker");
  const { id } = await client.post(live.url);
  await client.until(id, hasBytes(live.bytes(3)));
  await worker.end("SIGKILL");
  expect(await client.request("POST", id, "/finish")).toBe(200);
  live.list(3, 6);
  await cluster.start("worker");
  expect(await client.ended(id)).toMatchObject({ state: "succeeded", attempts: 1 });
  expect(await framesOf(client, id)).toBe(75);
});

/** Whether a live stream is recorded, and so much of it on the disk. */
function hasBytes(bytes: number): (task: Task) => boolean {
  return ({ progress }) => progress?.is_live === true && (progress.downloaded_bytes ?? 0) >= bytes;
}

async function framesOf(client: TaskClient, id: string): Promise<number | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "unreel-finish-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "file.mp4");
  await writeFile(path, await (await client.file(id)).bytes());
  return (await probe(path)).streams[0]?.frames;
}
