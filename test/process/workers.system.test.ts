import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { buildNestedMkv } from "../media/hostile-mkv.ts";
import { resource } from "../media/resources.ts";
import { downloadsOf, isRunning } from "./child-processes.ts";
import { clientOf } from "./test-cluster.ts";
import { film, openSite } from "./film-site.ts";
import { startTestService } from "./test-service.ts";
import { makeFolder } from "../folder.ts";

const secret = "postgres-password-in-the-environment";

/** Starts the service; resolves once a worker process of it is busy with a download that hangs. */
async function openScene(path: string, env: Record<string, string> = {}) {
  const dataDir = makeFolder();
  const site = await openSite();
  site.resources.set("nested.mkv", resource("video/x-matroska", buildNestedMkv(200_000)));
  if (path === "film.mp4") site.bytesPerSecond = film.length / 60;
  const service = await startTestService({
    DATA_DIR: dataDir,
    ALLOW_NETWORKS: "127.0.0.1/32",
    MIN_FREE_BYTES: "0",
    ...env,
  });
  const client = await clientOf(service);
  const { id } = await client.post(site.url(path));
  const stage = path === "film.mp4" ? "downloading" : "processing";
  await client.until(id, ({ progress }) => {
    return progress?.stage === stage && (progress.downloaded_bytes ?? 0) > 0;
  });
  const workers = downloadsOf(service.process.pid ?? 0);
  return { service, site, client, id, workers };
}

const areGone = (workers: readonly number[]) => () => !workers.some(isRunning);

describe.skipIf(process.platform !== "linux")("worker processes", () => {
  it.each([
    ["that wait for the network", "film.mp4"],
    ["that are busy with a hostile file", "nested.mkv"],
  ])("%s end when the service is killed", async (_what, path) => {
    const { service, workers } = await openScene(path);
    expect(workers).toHaveLength(1);
    await service.end("SIGKILL");
    await vi.waitUntil(areGone(workers), 60_000);
  });

  it("get nothing of the service's environment but where CA certificates are, and are gone when it has stopped", async () => {
    const { service, workers } = await openScene("film.mp4", { SECRET: secret, SSL_CERT_DIR: "/etc/ssl" });
    expect(workers).toHaveLength(1);
    const environment = readFileSync(`/proc/${workers[0]}/environ`, "latin1");
    expect(environment).not.toContain(secret);
    expect(environment).toContain("SSL_CERT_DIR=/etc/ssl");
    await service.end("SIGTERM");
    expect(workers.filter(isRunning)).toEqual([]);
  });

  it("go on when a signal to stop reaches them before the service; killed, as the system does if memory is short, their task is tried again", async () => {
    const { workers, service, site, client, id } = await openScene("film.mp4");
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.kill(workers[0]!, signal);
    site.bytesPerSecond = Infinity;
    expect(await client.ended(id)).toMatchObject({ state: "succeeded", attempts: 1 });

    site.bytesPerSecond = film.length / 60;
    const second = await client.post(site.url("film.mp4"));
    await client.until(second.id, ({ progress }) => (progress?.downloaded_bytes ?? 0) > 0);
    site.bytesPerSecond = Infinity;
    for (const pid of downloadsOf(service.process.pid ?? 0)) process.kill(pid, "SIGKILL");
    const error = { code: "unavailable", retryable: true, message: expect.stringContaining("SIGKILL") };
    expect(await client.until(second.id, (task) => task.error !== null)).toMatchObject({ state: "queued", error });
    const file = { size: film.length };
    expect(await client.ended(second.id)).toMatchObject({ state: "succeeded", attempts: 2, file });
  });
});
