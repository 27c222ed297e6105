import { createHash } from "node:crypto";
import { readMedium } from "../media/rendition.ts";
import { resource } from "../media/resources.ts";
import { type Site, startSite } from "../media/site.ts";
import { openCluster } from "./cluster.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import type { ServiceProcess } from "./service.ts";
import { watchVisits } from "./visits.ts";

export interface KillReport {
  /** From the kill until another worker asked the site for the medium. */
  seconds: number;
  /** Task and file have the hash of what the site serves. */
  isRight: boolean;
  /** Most workers that were fetching the medium at one moment. */
  mostAtOnce: number;
}

/**
 * Runs one API process and two workers, and `kills` tasks, one after the other: each one's worker is killed
 * by SIGKILL when a share of the medium, drawn by `random`, has been sent, and another takes its place.
 */
export async function killWorkers(options: {
  storeUrl: string;
  kills: number;
  random: () => number;
}): Promise<KillReport[]> {
  const { storeUrl, kills, random } = options;
  await using site = await startSite(new Map(), { bytesPerSecond: film.length / 4 });
  await using cluster = openCluster(storeUrl);
  const api = await cluster.start("api");
  const workers = new Map<number | undefined, ServiceProcess>();
  const hire = async () => {
    const worker = await cluster.start("worker");
    workers.set(worker.process.pid, worker);
  };
  await hire();
  const client = await openTaskClient(api.url);
  const reports: KillReport[] = [];
  for (let round = 0; round < kills; round++) {
    await hire();
    const share = 0.1 + 0.7 * random();
    reports.push(await killOne({ site, client, workers, name: `film-${round}.mp4`, share }));
  }
  client.close();
  return reports;
}

/** Three megabytes, most of it room to grow. */
const film = filmOf(3_000_000);

function filmOf(bytes: number): Buffer {
  const free = Buffer.alloc(bytes, "room");
  free.writeUInt32BE(free.length, 0);
  free.write("free", 4);
  return Buffer.concat([readMedium("index-first.mp4"), free]);
}

async function killOne(scene: {
  site: Site;
  client: TaskClient;
  workers: Map<number | undefined, ServiceProcess>;
  name: string;
  share: number;
}): Promise<KillReport> {
  const { site, client, workers, name, share } = scene;
  site.resources.set(name, resource("video/mp4", film));
  const visits = watchVisits(site, name);
  const target = site.sent + share * film.length;
  const { id } = await client.post(site.url(name));
  await site.until(() => site.sent >= target);
  const [first] = visits.firsts.keys();
  const startMs = performance.now();
  await workers.get(first)?.end("SIGKILL");
  workers.delete(first);
  const { file } = await client.ended(id);
  const [, second = Number.NaN] = visits.firsts.values();
  const bytes = await (await client.file(id)).bytes();
  return {
    seconds: (second - startMs) / 1000,
    isRight: file?.sha256 === hashOf(film) && hashOf(bytes) === hashOf(film),
    mostAtOnce: visits.mostAtOnce,
  };
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
