import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { createAudioFinder } from "../../src/model/format-ranking.ts";
import { downloadSize } from "../../src/model/format-sizes.ts";
import type { PageInfo } from "../../src/model/page-info.ts";
import { hasFfmpeg } from "../media/probe.ts";
import { resource } from "../media/resources.ts";
import { type Site, startSite } from "../media/site.ts";
import { openTaskClient, type TaskClient } from "../process/download-client.ts";
import { type ServiceProcess, startService } from "../process/service.ts";
import { makeSizeMedia, pageFor, sizeCases } from "./size-cases.ts";

describe.skipIf(!hasFfmpeg)("the size before the download, with media by ffmpeg (if installed)", () => {
  const folder = makeSharedFolder();
  let site: Site;
  let service: ServiceProcess;
  let client: TaskClient;

  beforeAll(async () => {
    site = await startSite(await makeSizeMedia());
    service = await startService({
      DATA_DIR: join(folder, "data"),
      ALLOW_NETWORKS: "127.0.0.1/32",
      MIN_FREE_BYTES: "0",
    });
    client = await openTaskClient(service.url);
  });
  afterAll(async () => {
    client?.close();
    await service?.end("SIGKILL");
    await site?.close();
  });

  it.for(sizeCases)("is that of the file, within 10 % of a stream's: $name", async (each) => {
    const path = `watch/${sizeCases.indexOf(each)}`;
    const html = pageFor(each, site.url(each.entry));
    site.resources.set(path, resource("text/html; charset=utf-8", html));
    const page = site.url(path);
    const response = await fetch(`${service.url}/info?url=${encodeURIComponent(page)}`);
    const info = (await response.json()) as PageInfo;
    const [format] = info.formats;
    const size = downloadSize(format!, createAudioFinder(info)(format!));
    const { id } = await client.post(page, { format_id: format!.format_id });
    const { error, file } = await client.ended(id);
    expect(error).toBeNull();
    const bytes = file?.size ?? 0;
    expect(size?.isExact).toBe(each.isExact === true);
    if (each.isExact === true) expect(size?.bytes).toBe(bytes);
    expect(Math.abs((size?.bytes ?? 0) - bytes) / bytes).toBeLessThan(0.1);
  });
});
