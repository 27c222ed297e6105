import { copyFileSync, renameSync, rmSync, symlinkSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { openTaskClient } from "./download-client.ts";
import { collectLog, type ServiceProcess } from "./service.ts";
import { startTestService } from "./test-service.ts";
import { makeFolder } from "../folder.ts";

const page = "https://video.example.com/watch";
const lost =
  /task store's file .* (?:was removed, moved or replaced|was cut short|could not be found \(ELOOP.*\)) while in use/;

it("a service whose data folder is removed is not ready, stores nothing and says so; it still lists", async () => {
  const { dataDir, service, log, before, client } = await startWithTask();
  rmSync(dataDir, { recursive: true });
  await expectRefusals(service);
  expect(await client.list()).toEqual([before]);
  expect(await (await fetch(`${service.url}/health/live`)).json()).toEqual({ status: "ok" });
  await vi.waitUntil(() => log.length > 0, 60_000);
  expect(log.filter(({ level }) => Number(level) >= 50)).toEqual([
    expect.objectContaining({ msg: expect.stringMatching(lost) }),
  ]);
  client.close();
  expect(await service.end("SIGTERM")).toEqual({ code: 0, signal: null });
});

it("a replaced database is noticed; put back, it stores tasks again and has every accepted one", async () => {
  const { dataDir, service, before, client, start } = await startWithTask();
  const path = join(dataDir, "tasks.db");
  renameSync(path, `${path}.moved`);
  copyFileSync(`${path}.moved`, path);
  await expectRefusals(service);
  renameSync(`${path}.moved`, path);
  expect((await fetch(`${service.url}/health/ready`)).status).toBe(200);
  const after = await client.post(page);
  client.close();
  await service.end("SIGKILL");
  const again = await openTaskClient((await start()).url);
  expect(await again.list()).toEqual([after, before]);
  again.close();
});

it("a data folder that cannot be entered stores nothing until it can, and is named once in the log", async () => {
  const { dataDir, service, log, client } = await startWithTask();
  renameSync(dataDir, `${dataDir}.moved`);
  // Permissions do not stop root; a link to itself stops everybody.
  symlinkSync(dataDir, dataDir);
  await expectRefusals(service);
  await expectRefusals(service);
  await vi.waitUntil(() => log.length > 0, 60_000);
  expect(log.filter(({ level }) => Number(level) >= 50)).toEqual([
    expect.objectContaining({ msg: expect.stringMatching(lost) }),
  ]);
  rmSync(dataDir);
  renameSync(`${dataDir}.moved`, dataDir);
  await client.post(page);
  expect(await client.list()).toHaveLength(2);
  client.close();
});

it("a database that is cut short takes no further task, which the next start could not read", async () => {
  const { dataDir, service, client } = await startWithTask();
  truncateSync(join(dataDir, "tasks.db"));
  await expectRefusals(service);
  client.close();
});

it("a removed write-ahead log loses no accepted task, even if the service is then killed", async () => {
  const { dataDir, service, before, client, start } = await startWithTask();
  rmSync(join(dataDir, "tasks.db-wal"));
  await expectRefusals(service);
  client.close();
  await service.end("SIGKILL");
  const again = await openTaskClient((await start()).url);
  expect((await again.list()).map(({ id }) => id)).toContain(before.id);
  await again.post(page);
  again.close();
});

async function startWithTask() {
  const dataDir = makeFolder();
  async function start(): Promise<ServiceProcess> {
    return startTestService({ DATA_DIR: dataDir, CONCURRENCY: "0" });
  }
  const service = await start();
  const log = collectLog(service);
  const client = await openTaskClient(service.url);
  return { dataDir, service, log, client, start, before: await client.post(page) };
}

/** Expects 503 from the readiness probe and from a POST. */
async function expectRefusals({ url }: ServiceProcess): Promise<void> {
  const post = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ url: page }),
  };
  for (const response of [
    await fetch(`${url}/tasks/`, post),
    await fetch(`${url}/health/ready`),
    await fetch(`${url}/tasks/`, post),
  ]) {
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({
      code: "unavailable",
      detail: expect.stringMatching(lost),
    });
  }
}
