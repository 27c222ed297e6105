import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openSqliteStore } from "../src/stores/sqlite/sqlite-store.ts";
import { describeDisk } from "./http/disk.ts";
import { fillStore } from "./http/fill.ts";
import { measureKeys } from "./http/keys.ts";
import { fillPostgres } from "./http/postgres.ts";
import { measureMetrics } from "./http/metrics.ts";
import type { RouteName } from "./http/routes.ts";
import { type Effort, type Entry, find, middle, ratio, runRounds, type Series } from "./http/rounds.ts";
import { takeSample } from "./http/sample.ts";
import { measureStart } from "./http/start.ts";
import { measureYtDlp } from "./http/ytdlp.ts";
import { type BenchPostgres, openBenchPostgres } from "./postgres.ts";
import { format, median, printTable, printTargets, type Target } from "./table.ts";

/**
 * Requests per second and latencies of the three routes against `node:http` and a bare Fastify route,
 * and the start of the whole process: `node bench/http.ts [--seconds 2] [--rounds 5] [--only NAME]…`.
 * Exits with 1 if a request fails; a missed target is only printed.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "2" },
      rounds: { type: "string", default: "5" },
      only: { type: "string", multiple: true, default: Object.keys(parts) },
    },
  });
  const effort = { seconds: Number(values.seconds), rounds: Number(values.rounds) };
  const folder = mkdtempSync(join(tmpdir(), "unreel-bench-"));
  await using postgres = await openBenchPostgres();
  console.log(`Node ${process.version}, ${availableParallelism()} cores; ${describeDisk(folder)}`);
  console.log(postgres.name);
  console.log(`${effort.rounds} rounds of ${effort.seconds} s, medians; × = ratio within a round`);
  try {
    const targets: Target[] = [];
    for (const [name, part] of Object.entries(parts)) {
      if (values.only.includes(name)) targets.push(...(await part({ folder, postgres, effort })));
    }
    printTargets(targets);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Bench {
  folder: string;
  postgres: BenchPostgres;
  effort: Effort;
}

const parts: Readonly<Record<string, (bench: Bench) => Promise<Target[]>>> = {
  create: measureCreate,
  list: measureList,
  keys: (bench) => measureKeys({ ...bench, print: printSeries }),
  info: measureInfo,
  metrics: measureMetrics,
  start: measureStarts,
  ytdlp: measureThroughYtDlp,
};

async function measureCreate({ folder, postgres, effort }: Bench): Promise<Target[]> {
  const connections = [64];
  const series = await runRounds(
    "create",
    [
      ...(await bareEntries("create")),
      { name: "fastify, fresh", spec: { kind: "fastify-fresh", keeps: false }, connections },
      { name: "fastify, Map", spec: { kind: "fastify-fresh", keeps: true }, connections },
      {
        name: "pg-boss",
        spec: { kind: "fastify-pg-boss", storeUrl: await postgres.open() },
        connections,
      },
      ...[
        ["memory", "memory:"] as const,
        ["sqlite", `sqlite:${join(folder, "create.db")}`] as const,
        ["postgres", await postgres.open()] as const,
      ].map(([name, storeUrl]): Entry => ({
        name,
        spec: { kind: "unreel", storeUrl },
        connections,
      })),
    ],
    effort,
  );
  printSeries("POST /tasks/", series);
  const times = (name: string, base: string) => ratio(find(series, name), find(series, base), perSecond);
  return [
    {
      name: "POST memory : bare Fastify, Map",
      value: times("memory", "fastify, Map"),
      unit: "×",
      atLeast: 0.8,
    },
    {
      name: "POST sqlite : bare Fastify, Map",
      value: times("sqlite", "fastify, Map"),
      unit: "×",
      atLeast: 0.5,
    },
    {
      name: "POST postgres : bare Fastify, a row and pg-boss's send",
      value: times("postgres", "pg-boss"),
      unit: "×",
      atLeast: 0.8,
    },
  ];
}

async function measureList({ folder, postgres, effort }: Bench): Promise<Target[]> {
  const entries = await bareEntries("list");
  for (const [size, tasks] of [
    ["1k", 1e3],
    ["1M", 1e6],
  ] as const) {
    const file = join(folder, `list-${size}.db`);
    await fillFile(file, tasks);
    const database = await postgres.open();
    await fillPostgres(database, tasks);
    const specs = {
      // The memory store is filled anew each time.
      ...(size === "1k" && { memory: { kind: "unreel", storeUrl: "memory:", tasks } as const }),
      sqlite: { kind: "unreel", storeUrl: `sqlite:${file}` },
      postgres: { kind: "unreel", storeUrl: database },
    } as const;
    for (const [store, spec] of Object.entries(specs)) {
      entries.push({ name: `${store} ${size}`, spec, connections: [64, 4] });
    }
  }
  const series = await runRounds("list", entries, effort);
  printSeries("GET /tasks/ (50 tasks a page)", series);
  const most = { sqlite: 1.3, postgres: 1.5 };
  return Object.entries(most).flatMap(([store, atMost]) =>
    [64, 4].map((connections) => ({
      name: `GET p99, 1M : 1k tasks, ${store}, ${connections} connections`,
      value: ratio(
        find(series, `${store} 1M`, connections),
        find(series, `${store} 1k`, connections),
        ({ p99Ms }) => p99Ms,
      ),
      unit: "×",
      atMost,
    })),
  );
}

async function measureInfo({ effort }: Bench): Promise<Target[]> {
  const connections = [64];
  const series = await runRounds(
    "info",
    [
      ...(await bareEntries("info")),
      { name: "cached", spec: { kind: "unreel", storeUrl: "memory:" }, connections },
      {
        name: "not cached",
        spec: { kind: "unreel", storeUrl: "memory:", infoCacheTtlS: 0 },
        connections,
      },
    ],
    effort,
  );
  printSeries("GET /info (a resolver that returns a prepared record)", series);
  return [];
}

async function measureStarts({ folder }: Bench): Promise<Target[]> {
  await fillFile(join(folder, "tasks.db"), 100_000);
  const starts = [];
  for (let run = 0; run < 5; run++) starts.push(await measureStart(folder));
  const readyMs = median(starts.map((start) => start.readyMs));
  const idleMiB = median(starts.map((start) => start.idleMiB));
  return [
    { name: "start with 100k tasks until ready", value: readyMs, unit: "ms", atMost: 1000 },
    { name: "resident memory, idle", value: idleMiB, unit: "MiB", atMost: 150 },
  ];
}

async function measureThroughYtDlp({ folder }: Bench): Promise<Target[]> {
  const times = await measureYtDlp(join(folder, "ytdlp"));
  if (times === undefined) {
    console.log("\nno yt-dlp: give its path as YTDLP");
    return [];
  }
  const { infoMs, fourMs, bareMs, sharedMiB } = times;
  const what = "GET /info through yt-dlp";
  return [
    { name: `${what}, p50`, value: infoMs, unit: "ms", atMost: 300 },
    { name: `${what}, 4 at once`, value: fourMs, unit: "ms", atMost: 1_000 },
    { name: `yt-dlp -J : ${what}`, value: bareMs / infoMs, unit: "×", atLeast: 4 },
    { name: "memory of yt-dlp's process", value: sharedMiB, unit: "MiB", atMost: 100 },
  ];
}

async function bareEntries(route: RouteName): Promise<Entry[]> {
  const sample = await takeSample(route);
  return (["node", "fastify"] as const).map((kind) => ({
    name: kind,
    spec: kind === "node" ? { kind, sample } : { kind, route, sample },
    connections: [64],
  }));
}

async function fillFile(path: string, tasks: number): Promise<void> {
  const store = openSqliteStore({ path, maxQueued: Number.POSITIVE_INFINITY });
  await fillStore(store, tasks);
  await store.close();
}

const perSecond = (round: { perSecond: number }) => round.perSecond;

function printSeries(title: string, series: readonly Series[]): void {
  const head = ["", "conns", "req/s", "× node", "× fastify", "p50 ms", "p99 ms"];
  const cpu = ["CPU µs/req", "× fastify", "server busy", "load busy"];
  const percent = (share: number) => `${Math.round(100 * share)} %`;
  const rows = series.map((one) => {
    const hasBase = one.connections === 64 && series.some(({ name }) => name === "fastify");
    const times = (base: string, pick: Parameters<typeof ratio>[2]) =>
      hasBase ? format(ratio(one, find(series, base), pick)) : "";
    return [
      one.name,
      `${one.connections}`,
      middle(one, perSecond).toFixed(0),
      times("node", perSecond),
      times("fastify", perSecond),
      format(middle(one, ({ p50Ms }) => p50Ms)),
      format(middle(one, ({ p99Ms }) => p99Ms)),
      format(middle(one, ({ cpuUs }) => cpuUs)),
      times("fastify", ({ cpuUs }) => cpuUs),
      percent(middle(one, ({ serverBusy }) => serverBusy)),
      percent(middle(one, ({ busy }) => busy)),
    ];
  });
  printTable(title, [...head, ...cpu], rows);
}

await main();
