import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { accessKeyOf, newSecret, newWebhookSecret } from "../src/keys/secrets.ts";
import { openSqliteStore } from "../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../src/stores/store.ts";
import { listedTask } from "../test/http/listed-task.ts";
import { startService } from "../test/process/service.ts";
import { forkChild } from "./child.ts";
import { openOwnersSite, type OwnersSite } from "./owners/site.ts";
import { type Requester, type WayName, ways } from "./owners/ways.ts";
import { format, median, printTable, printTargets } from "./table.ts";

/**
 * What one greedy owner costs the 99 others, in each of seven ways: the time that the same request of theirs takes, alone and
 * meanwhile, in turn: `node bench/owners.ts [--seconds 10] [--rounds 3] [--only NAME]…`.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "10" },
      rounds: { type: "string", default: "3" },
      only: { type: "string", multiple: true, default: Object.keys(ways) },
    },
  });
  const effort = { seconds: Number(values.seconds), rounds: Number(values.rounds) };
  const rows: string[][] = [];
  const targets = [];
  for (const name of (Object.keys(ways) as WayName[]).filter((way) => values.only.includes(way))) {
    const { alone, meanwhile } = await measure(name, effort);
    const ratio = median(meanwhile.map(({ p99Ms }, round) => p99Ms / (alone[round]?.p99Ms ?? Number.NaN)));
    const cells = [alone, meanwhile].flatMap((phases) => [
      format(median(phases.map(({ p50Ms }) => p50Ms))),
      format(median(phases.map(({ p99Ms }) => p99Ms))),
    ]);
    const refused = [...alone, ...meanwhile].reduce((sum, phase) => sum + phase.refused, 0);
    rows.push([`${name}: ${ways[name].others}`, ...cells, format(ratio), `${refused}`]);
    targets.push({ name: `${name}: the others' p99, meanwhile : alone`, value: ratio, unit: "×", atMost: 2 });
  }
  const head = ["", "alone p50 ms", "p99 ms", "meanwhile p50 ms", "p99 ms", "× p99", "refused"];
  printTable(`99 owners beside a greedy one, ${effort.rounds} rounds of ${effort.seconds} s`, head, rows);
  printTargets(targets);
}

interface Effort {
  seconds: number;
  rounds: number;
}

interface Phase {
  p50Ms: number;
  p99Ms: number;
  /** Requests that were answered by other than success. */
  refused: number;
}

interface Load {
  owners: readonly string[];
  perSecond: number;
  request: Requester;
}

async function measure(name: WayName, { seconds, rounds }: Effort) {
  await using opened = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), "unreel-bench-owners-"));
  opened.defer(() => rm(dataDir, { recursive: true }));
  const site = opened.use(await openOwnersSite());
  const secrets = await fillStore(join(dataDir, "tasks.db"), site);
  const service = await startService({
    DATA_DIR: dataDir,
    ALLOW_NETWORKS: "127.0.0.0/8",
    MIN_FREE_BYTES: "0",
    INFO_CACHE_TTL_S: "0",
  });
  opened.defer(async () => void (await service.end("SIGTERM")));
  const [greedy = "", ...owners] = secrets;
  const alone: Phase[] = [];
  const meanwhile: Phase[] = [];
  const { perSecond, request } = ways[name];
  const load = { owners, perSecond, request: (secret: string) => request({ service: service.url, secret, site }) };
  await measurePhase(load, 2);
  for (let round = 0; round < rounds; round += 1) {
    alone.push(await measurePhase(load, seconds));
    // A process of its own: what it does with its responses does not delay those of the others.
    const args = [name, service.url, greedy, site.slowUrl("")];
    const child = forkChild<null, never>(new URL("owners/greedy.ts", import.meta.url), { args });
    const failed = child.ask(null);
    failed.catch(() => undefined);
    await Promise.race([wait(2_000), failed]);
    meanwhile.push(await Promise.race([measurePhase(load, seconds), failed]));
    await child.stop();
    site.letGo();
    await wait(2_000);
  }
  return { alone, meanwhile };
}

/** Sends `perSecond` requests, evenly spread over the owners and the time; times count from when one was due. */
async function measurePhase({ owners, request, perSecond }: Load, seconds: number): Promise<Phase> {
  const startMs = performance.now();
  const times: number[] = [];
  let refused = 0;
  const requests: Promise<void>[] = [];
  const take = async (owner: string, dueMs: number) => {
    const isServed = await request(owner);
    times.push(performance.now() - dueMs);
    refused += Number(!isServed);
  };
  for (let n = 0; n < perSecond * seconds; n += 1) {
    const dueMs = startMs + (n * 1_000) / perSecond;
    await wait(Math.max(0, dueMs - performance.now()));
    const taken = take(owners[n % owners.length] ?? "", dueMs);
    // A request that fails before all are awaited does not end the process, which would hide why the service ended.
    taken.catch(() => undefined);
    requests.push(taken);
  }
  await Promise.all(requests);
  times.sort((a, b) => a - b);
  const quantile = (part: number) => times[Math.floor(part * times.length)] ?? Number.NaN;
  return { p50Ms: quantile(0.5), p99Ms: quantile(0.99), refused };
}

const longRecord = 240_000;

/** Stores 100 keys, 10 tasks of each, and 200 long records of the first. Returns the keys' secrets. */
async function fillStore(path: string, site: OwnersSite): Promise<string[]> {
  const store: TaskStore = openSqliteStore({ path, maxQueued: Number.POSITIVE_INFINITY });
  const secrets: string[] = [];
  for (let n = 0; n < 100; n += 1) {
    const secret = newSecret();
    const name = `owner-${n}`;
    const webhook = { url: n === 0 ? site.slowUrl("hook") : site.url(`hook/${secret}`), secret: newWebhookSecret() };
    await store.keys.add(accessKeyOf(secret, { name, admin: false, limits: {}, webhook }, new Date()));
    for (let task = 0; task < 10; task += 1) await store.create({ ...listedTask(n * 10 + task), owner: name });
    secrets.push(secret);
  }
  for (let n = 0; n < 200; n += 1) {
    const task = listedTask(10_000 + n);
    const info = task.info && { ...task.info, description: "long ".repeat(longRecord / 5) };
    await store.create({ ...task, ...(info && { info }), owner: "owner-0" });
  }
  await store.close();
  return secrets;
}

await main();
