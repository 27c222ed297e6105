import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { createExaminer, expectFrames } from "../media/examine.ts";
import { readMediaFixtures } from "../media/media-fixtures.ts";
import { startSite } from "../media/site.ts";
import { openTaskClient, type TaskClient } from "../process/download-client.ts";
import { type ServiceProcess, startService } from "../process/service.ts";
import { siteCases } from "./site-cases.ts";

const fixtures = readMediaFixtures();
const examine = createExaminer();

/** yt-dlp's script, if the environment names one. */
const { YTDLP: ytDlp = "off" } = process.env;
const modes = [
  { mode: "without yt-dlp", setting: "off", isThere: true },
  { mode: "with yt-dlp", setting: ytDlp, isThere: ytDlp !== "off" && ytDlp !== "" },
];

describe.each(modes)("a task on a page, $mode", { concurrent: true }, ({ setting, isThere }) => {
  const folder = makeSharedFolder();
  let service: ServiceProcess;
  let client: TaskClient;

  beforeAll(async () => {
    if (!isThere) return;
    service = await startService({
      DATA_DIR: join(folder, "data"),
      ALLOW_NETWORKS: "127.0.0.1/32",
      MIN_FREE_BYTES: "0",
      RETRY_BACKOFF_MS: "0",
      YTDLP: setting,
    });
    client = await openTaskClient(service.url);
  });
  afterAll(async () => {
    if (!isThere) return;
    client.close();
    await service.end("SIGKILL");
  });

  const keep = async (name: string, data: Buffer) => {
    const path = join(folder, name);
    await writeFile(path, data);
    return path;
  };

  it.skipIf(!isThere).for(siteCases)("ends with all frames: $name", async ({ media, prepare }) => {
    const fixture = fixtures.get(media)!;
    await using site = await startSite(new Map(fixture.resources));
    prepare(site, fixture);
    const { id } = await client.post(site.url("watch"));
    const { state, error, file } = await client.ended(id);
    expect({ state, error }).toEqual({ state: "succeeded", error: null });
    const bytes = Buffer.from(await (await client.file(id)).arrayBuffer());
    const path = await keep(`${id}.${fixture.ext}`, bytes);
    const made = { path, duration: file?.duration ?? null };
    await expectFrames(made, fixture, await examine(fixture, keep));
  });
});
