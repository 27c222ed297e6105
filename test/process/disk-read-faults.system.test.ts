import { expect, it, onTestFinished } from "vitest";
import { startSite } from "../media/site.ts";
import { crashMedia } from "./crash-download.ts";
import { startFaultyService } from "./disk-faults.ts";
import { openTaskClient } from "./download-client.ts";
import { makeFolder } from "../folder.ts";

const [{ entry, resources }] = crashMedia() as [ReturnType<typeof crashMedia>[number]];
const size = resources.get(entry)!.body.length;

it("a file that cannot be read is refused or cut short, never sent as if it were complete", async () => {
  const dataDir = makeFolder();
  await using site = await startSite(resources);
  const env = { ALLOW_NETWORKS: "127.0.0.1/32", MIN_FREE_BYTES: "0" };
  const service = await startFaultyService(dataDir, env);
  onTestFinished(() => void service.end("SIGKILL"));
  const client = await openTaskClient(service.url);
  const { id } = await client.ended((await client.post(site.url(entry))).id);
  const read = async () => {
    const response = await client.file(id);
    const bytes = await response.bytes().catch(() => null);
    const { calls, failed } = await service.disarm();
    const end = bytes === null ? "cut" : bytes.length === size ? "complete" : "half";
    return { calls, outcome: `${failed}: ${response.ok ? end : response.status}` };
  };
  await service.disarm();
  const { calls } = await read();
  const outcomes: string[] = [];
  // The first call of each kind, the second and the last: those between are like the second.
  for (const [kind, count] of Object.entries(calls)) {
    for (const nth of new Set([1, Math.min(2, count), count])) {
      await service.arm({ kind, nth, code: "EIO" });
      outcomes.push((await read()).outcome);
    }
  }
  const last = (await read()).outcome;
  client.close();
  expect(outcomes).toEqual(expect.arrayContaining(["open: 503", "stat: 503", "read: cut"]));
  expect(outcomes.filter((outcome) => outcome.endsWith("half"))).toEqual([]);
  expect(outcomes.filter((outcome) => outcome.startsWith("null"))).toEqual([]);
  expect(outcomes.filter((outcome) => /^open: (?!503)/.test(outcome))).toEqual([]);
  // It is marked as in use then, which may fail.
  expect(outcomes.filter((outcome) => /^stat: (?!503|complete)/.test(outcome))).toEqual([]);
  expect(last).toBe("null: complete");
  await expect.poll(() => service.openFiles()).toEqual([]);
});
