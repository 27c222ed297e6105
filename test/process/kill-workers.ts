import { hash } from "node:crypto";
import { resource } from "../media/resources.ts";
import { type Site, startSite } from "../media/site.ts";
import { openCluster } from "./cluster.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import { paddedFilm } from "./padded-film.ts";
import type { ServiceProcess } from "./service.ts";
import { watchVisits } from "./visits.ts";

interface KillReport {
  /** From the kill until another worker requested the film. */
  seconds: number;
  /** The task and its file have the hash of the film. */
  isRight: boolean;
  /** Largest number of workers with an open request for the film. */
  mostAtOnce: number;
}

/**
 * Runs one API process, two workers and `kills` tasks in turn. Kills the worker of each task with SIGKILL
 * after a share of the film, chosen by `random`, and starts a new worker for the next task.
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
  const startWorker = async () => {
    const worker = await cluster.start("worker");
    workers.set(worker.process.pid, worker);
  };
  await startWorker();
  const client = await openTaskClient(api.url);
  const reports: KillReport[] = [];
  for (let round = 0; round < kills; round++) {
    await startWorker();
    const share = 0.1 + 0.7 * random();
    reports.push(await killOne({ site, client, workers, name: `film-${round}.mp4`, share }));
  }
  client.close();
  return reports;
}

const film = paddedFilm(3_000_000);
const filmHash = hash("sha256", film);

async function killOne(options: {
  site: Site;
  client: TaskClient;
  workers: Map<number | undefined, ServiceProcess>;
  name: string;
  share: number;
}): Promise<KillReport> {
  const { site, client, workers, name, share } = options;
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
    isRight: file?.sha256 === filmHash && hash("sha256", bytes) === filmHash,
    mostAtOnce: visits.mostAtOnce,
  };
}
