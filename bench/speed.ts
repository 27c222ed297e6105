import { once } from "node:events";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { readMedium } from "../test/media/rendition.ts";
import { startService } from "../test/process/service.ts";
import { openBenchPostgres } from "./postgres.ts";
import { format, median, printTable, printTargets } from "./table.ts";

/** Tasks, of two hosts. */
const tasks = 6;
const settleS = 3;
/** What each task has received once it is under way. */
const settledBytes = 1_000_000;
const limitBps = 6_000_000;

/**
 * How exactly media are limited: `node bench/speed.ts [--seconds 10] [--rounds 3]`. Six tasks download from two hosts, in one process
 * and in two on Postgres, with a limit of everything and with one of each host.
 */
async function main(): Promise<void> {
  const options = { seconds: { type: "string", default: "10" }, rounds: { type: "string", default: "3" } } as const;
  const { values } = parseArgs({ options });
  const [seconds, rounds] = [Number(values.seconds), Number(values.rounds)];
  await using postgres = await openBenchPostgres();
  const [all, perHost] = [{ MAX_SPEED_BPS: `${limitBps}` }, { MAX_SPEED_PER_HOST_BPS: `${limitBps / 2}` }];
  const ways = [
    { name: "one process, MAX_SPEED_BPS", workers: [tasks], env: all },
    { name: "one process, MAX_SPEED_PER_HOST_BPS", workers: [tasks], env: perHost },
    { name: "two workers, MAX_SPEED_BPS", workers: [tasks / 2, tasks / 2], env: all },
    { name: "two workers, MAX_SPEED_PER_HOST_BPS", workers: [tasks / 2, tasks / 2], env: perHost },
    { name: "two workers, all tasks in one of them, MAX_SPEED_BPS", workers: [tasks, 0], env: all },
  ];
  const rows: { name: string; errors: number[] }[] = ways.map(({ name }) => ({ name, errors: [] }));
  for (let round = 0; round < rounds; round += 1) {
    for (const [number, { workers, env }] of ways.entries()) {
      const bps = await measure(workers, { ...env, STORE_URL: await postgres.open() }, seconds);
      rows[number]?.errors.push(100 * (bps / limitBps - 1));
    }
  }
  const worst = (errors: readonly number[]) => Math.max(...errors.map(Math.abs));
  printTable(
    `${tasks} tasks at ${limitBps / 1e6} MB/s in all, over ${seconds} s: what they received more, %, of ${rounds} rounds`,
    ["", "median", "worst"],
    rows.map(({ name, errors }) => [name, median(errors).toFixed(2), format(worst(errors))]),
  );
  printTargets(rows.map(({ name, errors }) => ({ name, value: Math.abs(median(errors)), unit: "%", atMost: 5 })));
}

/** Returns how many bytes a second all tasks wrote together, once all ran; `workers` says how many run in each. */
async function measure(workers: readonly number[], env: Record<string, string>, seconds: number): Promise<number> {
  const dataDir = await mkdtemp(join(tmpdir(), "unreel-speed-"));
  await using sites = await openSites(2);
  const settings = { ...env, DATA_DIR: dataDir, ALLOW_NETWORKS: "127.0.0.0/8", CONCURRENCY_PER_HOST: `${tasks}` };
  const services = await Promise.all(
    workers.map(async (most) => startService({ ...settings, CONCURRENCY: `${most}` })),
  );
  try {
    for (let n = 0; n < tasks; n += 1) {
      const body = JSON.stringify({ url: sites.urls[n % sites.urls.length] + `/${n}.mp4` });
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${services[0]?.url}/tasks/`, { method: "POST", headers, body });
      if (response.status !== 201) throw new Error(await response.text());
    }
    await sites.untilAsked(tasks);
    while ((await receivedBytes(dataDir)).filter((bytes) => bytes > settledBytes).length < tasks) await wait(100);
    await wait(1_000 * settleS);
    const [before, startMs] = [await writtenBytes(dataDir), performance.now()];
    await wait(1_000 * seconds);
    const elapsedS = (performance.now() - startMs) / 1_000;
    return ((await writtenBytes(dataDir)) - before) / elapsedS;
  } finally {
    await Promise.all(services.map((service) => service.end("SIGKILL")));
    await rm(dataDir, { recursive: true });
  }
}

/** What the service has received of all tasks: the system's buffers are no measure. */
async function writtenBytes(dataDir: string): Promise<number> {
  return (await receivedBytes(dataDir)).reduce((sum, bytes) => sum + bytes, 0);
}

/** What it has received of each task. */
async function receivedBytes(dataDir: string): Promise<number[]> {
  const parts = join(dataDir, "parts");
  return Promise.all(
    (await readdir(parts)).map(async (task) => {
      const entries = await readdir(join(parts, task), { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
      const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size));
      return sizes.reduce((sum, size) => sum + size, 0);
    }),
  );
}

/** Opens hosts whose films do not end within a measurement. */
async function openSites(count: number) {
  const film = readMedium("index-first.mp4");
  const rest = Buffer.alloc(64 * 1024);
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
  const paths = new Set<string>();
  let wanted = Infinity;
  const servers = Array.from({ length: count }, () =>
    createServer((request, response) => {
      paths.add(`${request.headers.host}${request.url}`);
      if (paths.size >= wanted) onAsked();
      response.writeHead(200, { "content-type": "video/mp4", "content-length": 10_000_000_000 });
      response.write(film);
      const write = () => {
        while (response.write(rest));
      };
      response.on("drain", write);
      write();
    }),
  );
  for (const server of servers) await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    urls: servers.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    untilAsked(number: number): Promise<void> {
      wanted = number;
      if (paths.size >= wanted) onAsked();
      return asked;
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}

await main();
