import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readMedium, readRendition } from "../media/rendition.ts";
import { hls, merge, resource, type Resources } from "../media/resources.ts";
import { type Site, startSite } from "../media/site.ts";
import { openTaskClient } from "./download-client.ts";
import { startService } from "./service.ts";

export interface DownloadCrashReport {
  /** Fewer than wanted where the download was over before. */
  kills: number;
  /** Why the task failed, if it did. */
  error: string | null;
  /** The file that came of it in the end is the one of an undisturbed download. */
  isRight: boolean;
  /** Files under a final name that were not that file, over all restarts. */
  halfFiles: number;
  /** Longest time from the start of a process until its run asked the site for something. */
  slowestRestartMs: number;
  /** Bytes that the site sent, those of the undisturbed download excluded : size of all its media. */
  sentShare: number;
}

export interface CrashMedium {
  name: string;
  resources: Resources;
  entry: string;
  bytesPerSecond: number;
}

/** A file of six megabytes, and a stream of sixty segments. */
export function crashMedia(): CrashMedium[] {
  const free = Buffer.alloc(6_000_000, "room");
  free.writeUInt32BE(free.length, 0);
  free.write("free", 4);
  const film = Buffer.concat([readMedium("index-first.mp4"), free]);
  const { lines, resources } = layFiles("ts", readRendition("high.m2t"), "ts");
  const again = Array.from({ length: 9 }, () => ["#EXT-X-DISCONTINUITY", ...namedAnew(lines)]);
  const copies = again.map((_, i) => renamed(resources, i));
  const all = again.map((each, i) => each.map((line) => line.replace("{copy}", `${i}`)));
  const playlist = hls(mediaPlaylist([...lines, ...all.flat()]));
  return [
    {
      name: "a file",
      resources: new Map([["film.mp4", resource("video/mp4", film)]]),
      entry: "film.mp4",
      bytesPerSecond: 2_000_000,
    },
    {
      name: "a stream",
      resources: merge(resources, ...copies, new Map([["index.m3u8", playlist]])),
      entry: "index.m3u8",
      bytesPerSecond: 40_000,
    },
  ];
}

function namedAnew(lines: readonly string[]): string[] {
  return lines.map((line) => (line.startsWith("#") ? line : `copy-{copy}/${line}`));
}

function renamed(resources: Resources, copy: number): Resources {
  return new Map([...resources].map(([path, each]) => [`copy-${copy}/${path}`, each]));
}

/**
 * Downloads `medium` once without trouble, then again with the service killed by SIGKILL at `kills`
 * moments: each when another share of the bytes, drawn by `random`, has been sent; the last when the
 * last byte has.
 */
export async function crashDownload(options: {
  dataDir: string;
  medium: CrashMedium;
  kills: number;
  random: () => number;
}): Promise<DownloadCrashReport> {
  const { dataDir, medium, kills, random } = options;
  const right = await downloadOnce(join(dataDir, "undisturbed"), medium);
  await using site = await startSite(medium.resources, medium);
  const disturbed = join(dataDir, "disturbed");
  const total = [...medium.resources.values()].reduce((sum, { body }) => sum + body.length, 0);
  const report: DownloadCrashReport = {
    kills: 0,
    error: null,
    isRight: false,
    halfFiles: 0,
    slowestRestartMs: 0,
    sentShare: 0,
  };
  let id: string | undefined;
  for (let round = 0; round <= kills; round++) {
    const askedBefore = site.asked.length;
    const startMs = performance.now();
    const service = await startService(environment(disturbed));
    const client = await openTaskClient(service.url);
    id ??= (await client.post(site.url(medium.entry))).id;
    const ended = client.ended(id);
    ended.catch(() => {});
    await Promise.race([ended, site.until(() => site.asked.length > askedBefore)]);
    report.slowestRestartMs = Math.max(report.slowestRestartMs, performance.now() - startMs);
    if (round === kills) {
      const { file, error } = await ended;
      report.error = error?.message ?? null;
      report.isRight = file?.sha256 === right && right === (await fetched(client, id));
      client.close();
      await service.end("SIGTERM");
      break;
    }
    const share = round === kills - 1 ? total - site.sent : (random() * total) / (kills + 1);
    const target = site.sent + share;
    await Promise.race([ended, site.until(() => site.sent >= target)]);
    await service.end("SIGKILL");
    client.close();
    report.kills += 1;
    report.halfFiles += hashesIn(join(disturbed, "files")).filter((hash) => hash !== right).length;
  }
  report.sentShare = site.sent / total;
  return report;
}

async function downloadOnce(dataDir: string, medium: CrashMedium): Promise<string> {
  await using site: Site = await startSite(medium.resources);
  const service = await startService(environment(dataDir));
  try {
    const client = await openTaskClient(service.url);
    const { file, error } = await client.ended((await client.post(site.url(medium.entry))).id);
    client.close();
    if (file === null) throw new Error(`the undisturbed download failed: ${error?.message}`);
    return file.sha256;
  } finally {
    await service.end("SIGTERM");
  }
}

function environment(dataDir: string): Record<string, string> {
  return { DATA_DIR: dataDir, ALLOW_NETWORKS: "127.0.0.1/32", MIN_FREE_BYTES: "0" };
}

async function fetched(
  client: Awaited<ReturnType<typeof openTaskClient>>,
  id: string,
): Promise<string> {
  const bytes = Buffer.from(await (await client.file(id)).arrayBuffer());
  return createHash("sha256").update(bytes).digest("hex");
}

function hashesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).map((name) =>
    createHash("sha256")
      .update(readFileSync(join(folder, name)))
      .digest("hex"),
  );
}

/** Numbers from 0 up to 1 that are the same for the same seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
