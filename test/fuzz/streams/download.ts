import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Download } from "../../../src/engines/engine.ts";
import { download } from "../../../src/engines/native/download.ts";
import { createHttpClient } from "../../../src/net/http/http-client.ts";
import { noAdditions } from "../../../src/remux/additions.ts";
import { createPageResolver } from "../../resolvers/page/local-reader.ts";
import { chooseFormat } from "../../../src/resolvers/choose-format.ts";
import type { Resources } from "../../media/resources.ts";
import { type Site, startSite } from "../../media/site.ts";
import type { Stream } from "./streams.ts";

export type Downloader = Awaited<ReturnType<typeof openDownloader>>;

interface Laid {
  resources: Resources;
  entry: string;
  hasLength: boolean;
}

/** Downloads what sites on loopback have, in this process: pages, choice and engine are those of the service. */
export async function openDownloader() {
  const allowNetworks = ["127.0.0.1/32"];
  const pages = createHttpClient({ allowNetworks });
  const resolver = createPageResolver({ client: pages, pageMaxBytes: 1_000_000 });
  const client = createHttpClient({ allowNetworks, perHost: 4, idleTimeoutMs: 30_000, totalTimeoutMs: Infinity });
  const root = await mkdtemp(join(tmpdir(), "unreel-mutations-"));
  const idle: Site[] = [];
  const sites: Site[] = [];
  let folders = 0;

  const newFolder = async () => {
    folders += 1;
    const folder = join(root, `${folders}`);
    await mkdir(folder);
    return folder;
  };
  const takeSite = async () => {
    const free = idle.pop();
    if (free !== undefined) return free;
    const site = await startSite(new Map());
    sites.push(site);
    return site;
  };
  const runOn = async (site: Site, laid: Laid, options: Stream["options"], folder: string) => {
    site.resources = laid.resources;
    leaveLengthOut(site, laid.hasLength ? null : laid.entry);
    const signal = AbortSignal.timeout(120_000);
    const page = await resolver.resolve(new URL(site.url(laid.entry)), { signal });
    const choice = chooseFormat(page, { audio_only: options.audioOnly === true });
    const { tags, chapters } = noAdditions;
    const job = {
      ...choice,
      preference: {},
      otherAudio: [],
      audioLanguages: ["original"],
      isAudioFile: options.audioOnly === true,
      ranges: [],
      description: { tags: options.embed === "all" ? { ...tags, title: "A" } : tags, name: null, chapters, covers: [] },
      embed: options.embed ?? ("made" as const),
      subtitles: [],
      ownSubtitles: [],
      pageUrl: site.url("watch"),
      folder,
      maxBytes: 1e8,
      maxLiveS: 60,
    };
    const context = {
      client,
      concurrentFragments: 4,
      minFreeBytes: 0,
      minSpeedBps: 0,
      signal,
      onProgress() {},
      onWork() {},
    };
    const made: Download = await download(job, context);
    return { made, listed: { video: choice.format.vcodec, audio: choice.audio ?? choice.format.acodec } };
  };
  return {
    newFolder,
    /** Returns what the service makes of it, in `folder`. @throws what the service throws */
    async run(laid: Laid, { options, folder }: { options: Stream["options"]; folder: string }) {
      const site = await takeSite();
      try {
        return await runOn(site, laid, options, folder);
      } finally {
        idle.push(site);
      }
    },
    async close() {
      await resolver.close();
      for (const site of sites) await site.close();
      // A run that was interrupted may still write.
      await rm(root, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** Of `path`, the site states no length: its end is the end of the connection. */
function leaveLengthOut(site: Site, path: string | null): void {
  for (const known of site.resources.keys()) site.answer(known, (_, serve) => serve());
  if (path === null) return;
  site.answer(path, (response) => {
    response.shouldKeepAlive = false;
    response.useChunkedEncodingByDefault = false;
    response.writeHead(200, { "content-type": "application/octet-stream" }).end(site.resources.get(path)?.body);
  });
}
