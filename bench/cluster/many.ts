import { setTimeout as wait } from "node:timers/promises";
import type { Task } from "../../src/model/task.ts";
import { readMedium } from "../../test/media/rendition.ts";
import { resource } from "../../test/media/resources.ts";
import { type Site, startSite } from "../../test/media/site.ts";
import { openCluster } from "../../test/process/cluster.ts";
import { openTaskClient, type TaskClient } from "../../test/process/download-client.ts";
import { type Visits, watchVisits } from "../../test/process/visits.ts";
import { format, printTable, type Target } from "../table.ts";
import type { Bench } from "./part.ts";

interface Load {
  tasks: number;
  workers: number;
  /** Delay of each film response, milliseconds. */
  waitMs: number;
  /** Concurrent tasks of each worker. */
  slots: number;
}

interface Run extends Load {
  perSecond: number;
  /** Throughput if a task took nothing but `waitMs`. */
  mostPerSecond: number;
  /** Not succeeded. */
  lost: number;
  /** Tasks whose film was requested more than once. */
  runTwice: number;
  /** Tasks of the worker with the fewest. */
  fewest: number;
}

/**
 * Many small tasks in one worker and in several: with short waits to count losses, and with waits that
 * leave the processors idle to measure throughput.
 */
export async function measureMany(bench: Bench): Promise<Target[]> {
  const short = { waitMs: 10, slots: 8 };
  const long = { waitMs: 1_000, slots: 8 };
  const perWorker = bench.isQuick ? 32 : 160;
  const loads: Load[] = [
    { ...short, workers: 1, tasks: bench.isQuick ? 100 : 2_000 },
    { ...short, workers: 4, tasks: bench.isQuick ? 500 : 10_000 },
    ...[1, 2, 4].map((workers) => ({ ...long, workers, tasks: workers * perWorker })),
  ];
  const runs: Run[] = [];
  for (const load of loads) runs.push(await runMany(bench, load));
  printRuns(runs);
  const rate = (workers: number) =>
    runs.find((run) => run.workers === workers && run.waitMs === long.waitMs)?.perSecond ?? Number.NaN;
  const sum = (pick: (run: Run) => number) => runs.reduce((total, run) => total + pick(run), 0);
  return [
    { name: "tasks lost", value: sum(({ lost }) => lost), unit: "", atMost: 0 },
    { name: "tasks run twice", value: sum(({ runTwice }) => runTwice), unit: "", atMost: 0 },
    { name: "tasks/s that wait, 4 : 1 workers", value: rate(4) / rate(1), unit: "×", atLeast: 3 },
  ];
}

function printRuns(runs: readonly Run[]): void {
  const head = ["each waits", "slots", "workers", "tasks", "tasks/s", "× 1 worker", "of the most"];
  const rows = runs.map((run) => {
    const one = runs.find(({ workers, waitMs }) => workers === 1 && waitMs === run.waitMs);
    return [
      `${run.waitMs} ms`,
      ...[run.slots, run.workers, run.tasks].map(String),
      format(run.perSecond),
      format(run.perSecond / (one?.perSecond ?? Number.NaN)),
      `${Math.round((100 * run.perSecond) / run.mostPerSecond)} %`,
      ...[run.lost, run.runTwice, run.fewest].map(String),
    ];
  });
  printTable("many tasks", [...head, "lost", "run twice", "fewest of a worker"], rows);
}

async function runMany({ postgres }: Bench, load: Load): Promise<Run> {
  const { tasks, workers, waitMs, slots } = load;
  await using site = await startSite(new Map());
  await using cluster = openCluster(await postgres.open(), {
    CONCURRENCY: `${slots}`,
    CONCURRENCY_PER_HOST: `${slots}`,
    FETCHES_PER_HOST: `${slots}`,
  });
  const api = await cluster.start("api");
  await Promise.all(Array.from({ length: workers }, () => cluster.start("worker")));
  const client = await openTaskClient(api.url);
  // The first runs of a process load and compile code.
  await runAll(client, addFilms(site, "warm-up", 2 * workers * slots, waitMs));
  const films = addFilms(site, "film", tasks, waitMs);
  const startMs = performance.now();
  const ended = await runAll(client, films);
  const seconds = (performance.now() - startMs) / 1000;
  client.close();
  const visits = films.map((film) => film.visits);
  const counts = Map.groupBy(
    visits.flatMap(({ firsts }) => [...firsts.keys()]),
    (pid) => pid,
  );
  const shares = [...counts.values()].map((each) => each.length);
  return {
    ...load,
    perSecond: tasks / seconds,
    mostPerSecond: (1000 * workers * slots) / waitMs,
    lost: ended.filter(({ state }) => state !== "succeeded").length,
    runTwice: visits.filter(({ requests }) => requests !== 1).length,
    fewest: shares.length < workers ? 0 : Math.min(...shares),
  };
}

interface Film {
  page: string;
  visits: Visits;
}

function addFilms(site: Site, name: string, count: number, waitMs: number): Film[] {
  return Array.from({ length: count }, (_, number) => {
    const path = `${name}/${number}.mp4`;
    const page = `<title>Film ${number}</title><meta property="og:video" content="/${path}">`;
    site.resources.set(`watch/${path}`, resource("text/html", page));
    site.resources.set(path, medium);
    return {
      page: site.url(`watch/${path}`),
      visits: watchVisits(site, path, () => wait(waitMs)),
    };
  });
}

const medium = resource("video/mp4", readMedium("index-first.mp4"));

/** Posts all tasks, 32 at a time; returns them as they ended. */
async function runAll(client: TaskClient, films: readonly Film[]): Promise<Task[]> {
  const ends: Promise<Task>[] = [];
  const waiting = films.values();
  const post = async () => {
    for (const { page } of waiting) ends.push(client.ended((await client.post(page)).id));
  };
  await Promise.all(Array.from({ length: 32 }, post));
  return Promise.all(ends);
}
