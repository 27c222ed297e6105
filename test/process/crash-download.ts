import { hash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge, resource, type Resources } from "../media/resources.ts";
import { startSite } from "../media/site.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import { paddedFilm } from "./padded-film.ts";
import { startService } from "./service.ts";

interface DownloadCrashReport {
  /** Kills during the download; fewer than requested if it ended first. */
  kills: number;
  /** Why the task failed, if it did. */
  error: string | null;
  /** The final file is that of an undisturbed download. */
  isRight: boolean;
  /** Files under a final name that differed from that file, over all restarts. */
  halfFiles: number;
  /** Longest time from the start of a process until the first request of its run. */
  slowestRestartMs: number;
  /** Bytes that the site sent, without the undisturbed download, divided by the size of its media. */
  sentShare: number;
}

interface CrashMedium {
  name: string;
  resources: Resources;
  entry: string;
  bytesPerSecond: number;
}

/** Returns a file of six megabytes and a stream of sixty segments. */
export function crashMedia(): CrashMedium[] {
  const film = paddedFilm(6_000_000);
  const { lines, resources } = layFiles("ts", readRendition("high.m2t"), "ts");
  const numbers = Array.from({ length: 9 }, (_, i) => i);
  const copies = numbers.map((i) => copyResources(resources, i));
  const copiedLines = numbers.flatMap((i) => ["#EXT-X-DISCONTINUITY", ...copyLines(lines, i)]);
  const playlist = hls(mediaPlaylist([...lines, ...copiedLines]));
  return [
    {
      name: "a file",
      resources: new Map([["film.mp4", resource("video/mp4", film)]]),
      entry: "film.mp4",
      bytesPerSecond: 6_000_000,
    },
    {
      name: "a stream",
      resources: merge(resources, ...copies, new Map([["index.m3u8", playlist]])),
      entry: "index.m3u8",
      bytesPerSecond: 120_000,
    },
  ];
}

/** So slow that nothing is sent while a test looks. */
const heldBytesPerSecond = 20;

function copyLines(lines: readonly string[], copy: number): string[] {
  return lines.map((line) => (line.startsWith("#") ? line : `copy-${copy}/${line}`));
}

function copyResources(resources: Resources, copy: number): Resources {
  return new Map([...resources].map(([path, each]) => [`copy-${copy}/${path}`, each]));
}

/**
 * Downloads `medium` once undisturbed, then again with `kills` SIGKILLs of the service: each after
 * saved progress and a further share of the bytes, chosen by `random`, which the site then holds; the last when the last byte has been sent.
 */
export async function crashDownload(options: {
  dataDir: string;
  medium: CrashMedium;
  kills: number;
  random: () => number;
}): Promise<DownloadCrashReport> {
  const { dataDir, medium, kills, random } = options;
  // One site, as files name where they come from.
  await using site = await startSite(medium.resources);
  const right = await downloadOnce(join(dataDir, "undisturbed"), site.url(medium.entry));
  site.bytesPerSecond = medium.bytesPerSecond;
  const sentBefore = site.sent;
  const sent = () => site.sent - sentBefore;
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
  let bytes = 0;
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
      report.isRight = file?.sha256 === right && right === (await fetchedHash(client, id));
      client.close();
      await service.end("SIGTERM");
      break;
    }
    const share = round === kills - 1 ? (total - sent()) / 2 : (random() * total) / (kills + 1);
    const target = sent() + share;
    // The site sends no more until the service is killed, so that it is, however slow the machine is.
    const held = site.until(() => sent() >= target).then(() => void (site.bytesPerSecond = heldBytesPerSecond));
    // A task whose worker dies twice without progress fails.
    const further = client.until(id, ({ progress }) => (progress?.downloaded_bytes ?? 0) > bytes);
    further.catch(() => {});
    const isRunning = await Promise.race([
      ended.then(() => false),
      Promise.all([further, held])
        .then(() => void (site.bytesPerSecond = medium.bytesPerSecond))
        .then(() => (round === kills - 1 ? site.until(() => sent() >= total) : undefined))
        .then(() => true),
    ]);
    bytes = (await client.get(id)).progress?.downloaded_bytes ?? bytes;
    await service.end("SIGKILL");
    client.close();
    if (isRunning) report.kills += 1;
    report.halfFiles += hashesIn(join(disturbed, "files")).filter((each) => each !== right).length;
  }
  report.sentShare = sent() / total;
  return report;
}

async function downloadOnce(dataDir: string, url: string): Promise<string> {
  const service = await startService(environment(dataDir));
  try {
    const client = await openTaskClient(service.url);
    const { file, error } = await client.ended((await client.post(url)).id);
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

async function fetchedHash(client: TaskClient, id: string): Promise<string> {
  return hash("sha256", await (await client.file(id)).bytes());
}

function hashesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).map((name) => hash("sha256", readFileSync(join(folder, name))));
}
