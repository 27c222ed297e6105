import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openTaskClient } from "./download-client.ts";
import { film, openSite } from "./film-site.ts";
import { startService } from "./service.ts";

it("a download whose process the system kills, as it does if memory is short, is tried again", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "unreel-killed-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const site = await openSite({ bytesPerSecond: film.length / 60 });
  const service = await startService({ DATA_DIR: dataDir, ALLOW_NETWORKS: "127.0.0.0/8", MIN_FREE_BYTES: "0" });
  onTestFinished(async () => void (await service.end("SIGKILL")));
  const client = await openTaskClient(service.url);
  onTestFinished(() => client.close());
  const { id } = await client.post(site.url("film.mp4"));
  await client.until(id, ({ progress }) => (progress?.downloaded_bytes ?? 0) > 0);
  site.bytesPerSecond = Infinity;
  const ofDownloads = ["--parent", `${service.process.pid}`, "--full", "start-worker.js"];
  const found = execFileSync("pgrep", ofDownloads, { encoding: "utf8" });
  for (const pid of found.trim().split("\n")) process.kill(Number(pid), "SIGKILL");
  const retried = await client.until(id, ({ error }) => error !== null);
  expect(retried).toMatchObject({
    state: "queued",
    error: { code: "unavailable", message: expect.stringContaining("memory is short") },
  });
  expect(await client.ended(id)).toMatchObject({ state: "succeeded", attempts: 2, file: { size: film.length } });
});
