import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Download, DownloadJob, DownloadProgress, Engine } from "../../../src/engines/engine.ts";
import { createHttpClient } from "../../../src/net/http/http-client.ts";
import { noAdditions } from "../../../src/remux/additions.ts";
import type { Format } from "../../../src/model/page-info.ts";
import { createPageResolver } from "../../resolvers/page/local-reader.ts";
import { formatOf } from "../../formats.ts";
import { type MediaFixture, readMediaFixtures } from "../../media/media-fixtures.ts";
import type { Resources } from "../../media/resources.ts";
import { type Site, startSite } from "../../media/site.ts";

export type OpenEngine = () => Engine;

/** A site and an empty folder for one test; disposing removes both. */
export interface EngineHarness extends AsyncDisposable {
  site: Site;
  job: DownloadJob;
  /** Reported so far. */
  progress: DownloadProgress[];
  download(change?: Partial<DownloadJob>, signal?: AbortSignal, finish?: AbortSignal): Promise<Download>;
  /** Resolves once that many bytes are reported. */
  whenDownloaded(bytes: number): Promise<void>;
  /** Writes a file outside the job folder; returns its path. */
  keep(name: string, data: Buffer): Promise<string>;
  /** Creates another folder for a job; returns its path. A later run in one folder waits for readers of the stream of an earlier one. */
  newFolder(): Promise<string>;
}

/** Prepares a download of the best format that the resolver finds in the fixture of that name, with its audio. */
export function openFixture(open: OpenEngine, name: string): Promise<EngineHarness> {
  return openMedia(open, readMediaFixtures().get(name)!);
}

/** Prepares a download of the best format that the resolver finds, with its audio. */
export async function openMedia(
  open: OpenEngine,
  { resources, entry }: Pick<MediaFixture, "resources" | "entry">,
): Promise<EngineHarness> {
  const site = await startSite(new Map(resources));
  const formats = await resolve(site.url(entry));
  const [format] = formats;
  if (format === undefined) throw new Error(`no format was found for ${entry}`);
  const audio = formats.findLast(({ vcodec }) => vcodec === "none") ?? null;
  return prepare(open, site, { format, audio: format.acodec === "none" ? audio : null });
}

/** Prepares a download of `entry`, which was not read before. */
export async function openEntry(open: OpenEngine, resources: Resources, entry: string): Promise<EngineHarness> {
  const site = await startSite(new Map(resources));
  return prepare(open, site, { format: formatAt(site.url(entry)), audio: null });
}

/** Returns the format of a page that states only a URL. */
export function formatAt(url: string): Format {
  const ext = url.slice(url.lastIndexOf(".") + 1);
  const protocol = ext === "m3u8" ? "m3u8" : ext === "mpd" ? "dash" : "https";
  return formatOf(protocol === "dash" ? "dash-v" : protocol, {
    url,
    manifest_url: protocol === "https" ? null : url,
    protocol,
    ext: protocol === "https" ? ext : "mp4",
  });
}

async function resolve(url: string): Promise<Format[]> {
  const client = createHttpClient({ allowNetworks: ["127.0.0.1/32"], idleTimeoutMs: 60_000, totalTimeoutMs: 60_000 });
  const resolver = createPageResolver({ client, pageMaxBytes: 1_000_000, linkTimeoutMs: 60_000 });
  try {
    return (await resolver.resolve(new URL(url), { signal: new AbortController().signal })).formats;
  } finally {
    await resolver.close();
  }
}

async function prepare(
  open: OpenEngine,
  site: Site,
  formats: Pick<DownloadJob, "format" | "audio">,
): Promise<EngineHarness> {
  const root = await mkdtemp(join(tmpdir(), "unreel-engine-"));
  const folder = join(root, "parts");
  await mkdir(folder);
  const pageUrl = site.url("watch");
  const { tags, chapters } = noAdditions;
  const about = {
    description: { tags, name: null, chapters, covers: [] },
    embed: "made",
    subtitles: [],
    ownSubtitles: [],
  } as const;
  const job = {
    preference: {},
    otherAudio: [],
    isAudioFile: false,
    ranges: [],
    ...formats,
    ...about,
    pageUrl,
    audioLanguages: ["original"],
    audioOnly: false,
    folder,
    maxBytes: 1e8,
    maxLiveS: 60,
  };
  const progress: DownloadProgress[] = [];
  const waiting = new Set<() => void>();
  return {
    site,
    job,
    progress,
    download: (change = {}, signal = new AbortController().signal, finish) =>
      open().download(
        { ...job, ...change },
        {
          signal,
          ...(finish !== undefined && { finish }),
          onProgress(now) {
            progress.push(now);
            for (const check of waiting) check();
          },
        },
      ),
    whenDownloaded(bytes) {
      const { promise, resolve: done } = Promise.withResolvers<void>();
      waiting.add(() => {
        if ((progress.at(-1)?.downloaded_bytes ?? 0) >= bytes) done();
      });
      return promise;
    },
    async keep(name, data) {
      const path = join(root, name);
      await writeFile(path, data);
      return path;
    },
    newFolder: () => mkdtemp(join(root, "parts-")),
    async [Symbol.asyncDispose]() {
      await site.close();
      await rm(root, { recursive: true });
    },
  };
}
