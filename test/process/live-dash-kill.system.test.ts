import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { liveResources, startLiveDash } from "../media/live-dash.ts";
import { probe } from "../media/probe.ts";
import { startTestSite } from "../media/test-site.ts";
import { openTaskClient } from "./download-client.ts";
import { startTestService } from "./test-service.ts";
import { makeFolder } from "../folder.ts";

it("a recording of live DASH has each listed frame once although the service is killed", async () => {
  const dataDir = makeFolder();
  const resources = liveResources();
  const site = await startTestSite(resources);
  const { requested } = startLiveDash(site, { addressing: "$Time$ of a timeline" });
  const open = async () => {
    const service = await startTestService({ DATA_DIR: dataDir, ALLOW_NETWORKS: "127.0.0.1/32" });
    return { service, client: await openTaskClient(service.url) };
  };
  const killed = await open();
  const { id } = await killed.client.post(site.url("live.mpd"));
  const first = ["v1/0.m4s", "a1/0.m4s", "v1/1000.m4s", "a1/1000.m4s"];
  const bytes = first.reduce((sum, path) => sum + resources.get(path)!.body.length, 0);
  await killed.client.until(id, ({ progress }) => (progress?.downloaded_bytes ?? 0) > bytes);
  killed.client.close();
  await killed.service.end("SIGKILL");

  const { client } = await open();
  onTestFinished(() => client.close());
  expect(await client.ended(id)).toMatchObject({ state: "succeeded", attempts: 1, file: { warnings: [] } });
  const path = join(dataDir, "recorded.mp4");
  writeFileSync(path, await (await client.file(id)).bytes());
  expect(await probe(path)).toMatchObject({
    streams: [
      { kind: "video", frames: 150 },
      { kind: "audio", frames: 282 },
    ],
  });
  // What was on the disk is not fetched again.
  expect(requested().filter((name) => name === "v1/0.m4s")).toHaveLength(1);
});
