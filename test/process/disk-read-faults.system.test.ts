import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startSite } from "../media/site.ts";
import { crashMedia } from "./crash-download.ts";
import { startFaultyService } from "./disk-faults.ts";
import { openTaskClient } from "./download-client.ts";

const [{ entry, resources }] = crashMedia() as [ReturnType<typeof crashMedia>[number]];
const size = resources.get(entry)!.body.length;

it("a file that cannot be read is refused or cut short, never sent as if it were complete", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "unreel-disk-faults-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  await using site = await startSite(resources);
  const env = { ALLOW_NETWORKS: "127.0.0.1/32", MIN_FREE_BYTES: "0" };
  const service = await startFaultyService(dataDir, env);
  onTestFinished(() => void service.end("SIGKILL"));
  const client = await openTaskClient(service.url);
  const { id } = await client.ended((await client.post(site.url(entry))).id);
  const outcomes: string[] = [];
  for (let n = 1, failed: string | null = ""; failed !== null; n += 1) {
    await service.arm({ n, code: "EIO" });
    const response = await client.file(id);
    const bytes = await response.bytes().catch(() => null);
    failed = (await service.disarm()).failed;
    const end = bytes === null ? "cut" : bytes.length === size ? "complete" : "half";
    outcomes.push(`${failed}: ${response.ok ? end : response.status}`);
  }
  client.close();
  expect(outcomes.slice(0, 2)).toEqual(["open: 503", "stat: 503"]);
  expect(outcomes).toContain("read: cut");
  expect(outcomes.filter((outcome) => outcome.endsWith("half"))).toEqual([]);
  expect(outcomes.at(-1)).toBe("null: complete");
  await expect.poll(() => service.openFiles()).toEqual([]);
});
