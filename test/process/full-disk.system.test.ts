import { randomUUID } from "node:crypto";
import { statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openTaskClient } from "./download-client.ts";
import type { ServiceProcess } from "./service.ts";
import { startTestService } from "./test-service.ts";
import { fillDisk, mountSmallDisk } from "./small-disk.ts";

/** The largest task. */
const page = `https://video.example.com/${"a".repeat(8_100)}`;
const pageBytes = 4096;

it("on a disk that is full a service is ready only when it can store a task, and loses none", async (test) => {
  const dataDir = mountSmallDisk("8m");
  if (dataDir === undefined) {
    test.skip("needs the right to mount a disk");
    return;
  }
  const start = () => startTestService({ DATA_DIR: dataDir, CONCURRENCY: "0" });
  const service = await start();
  const accepted = [await post(service)];
  const ballast = join(dataDir, "ballast");
  fillDisk(ballast);
  let refusals = 0;
  // The disk gets a page at a time.
  while (accepted.length < 5) {
    const { status } = await fetch(`${service.url}/health/ready`);
    expect([200, 503]).toContain(status);
    if (status === 200) accepted.push(await post(service));
    refusals += Number(status === 503);
    truncateSync(ballast, statSync(ballast).size - pageBytes);
  }
  expect(refusals).toBeGreaterThan(10);
  await service.end("SIGKILL");
  const again = await start();
  const client = await openTaskClient(again.url);
  expect((await client.list()).map(({ id }) => id)).toEqual(accepted.toReversed());
  client.close();
});

/** Returns the id of the new task. */
async function post({ url }: ServiceProcess): Promise<unknown> {
  const response = await fetch(`${url}/tasks/`, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": randomUUID() },
    body: JSON.stringify({ url: page }),
  });
  expect(response.status).toBe(201);
  return ((await response.json()) as { id: string }).id;
}
