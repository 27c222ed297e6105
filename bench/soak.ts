import { parseArgs } from "node:util";
import { createRandom } from "../test/random.ts";
import { openBenchService, type Usage } from "./download/service.ts";
import { type Counters, startSoakClients } from "./soak/clients.ts";
import { openFaultySite } from "./soak/site.ts";
import { format, median, printTable, printTargets } from "./table.ts";

/**
 * Small downloads from a site that cuts, stalls and fails, with cancels, deletes and retries:
 * `node bench/soak.ts [--minutes 30] [--seed 1]`. Exits with 1 if memory, open files, threads or worker
 * processes grow from the first third to the last, or if a file is wrong.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "30" },
      seed: { type: "string", default: "1" },
    },
  });
  const random = createRandom(Number(values.seed));
  const endMs = Date.now() + Number(values.minutes) * 60_000;
  await using site = await openFaultySite(random);
  await using service = await openBenchService({
    CONCURRENCY: "6",
    CONCURRENCY_PER_HOST: "6",
    IDLE_TIMEOUT_MS: "1500",
    RETRY_BACKOFF_MS: "50",
    MAX_ATTEMPTS: "3",
  });
  const clients = startSoakClients({ client: service.client, site, random, count: 12 });
  const samples: Usage[] = [];
  const everyMs = Math.min(10_000, Number(values.minutes) * 1_000);
  const timer = setInterval(() => samples.push(service.usage()), everyMs);
  await Promise.race([clients.failed, new Promise((resolve) => setTimeout(resolve, endMs - Date.now()))]);
  clearInterval(timer);
  await clients.stop();
  // Idle resources are released after a while; what is still there then has leaked.
  await new Promise((resolve) => setTimeout(resolve, 15_000));
  print(samples, service.usage(), clients.counters);
}

function print(samples: readonly Usage[], end: Usage, counters: Counters): void {
  const third = Math.ceil(samples.length / 3);
  const thirds = [0, 1, 2].map((i) => samples.slice(i * third, (i + 1) * third));
  const row = (name: keyof Usage) => [
    name,
    ...thirds.map((part) => format(median(part.map((each) => each[name])))),
    format(end[name]),
  ];
  printTable(
    `${samples.length} samples, medians`,
    ["", "first third", "second", "last third", "at rest"],
    (["residentMiB", "files", "threads", "workers", "workersMiB"] as const).map(row),
  );
  printTable(
    "counters",
    ["", ""],
    Object.entries(counters).map(([name, count]) => [name, `${count}`]),
  );
  const growth = (name: keyof Usage) => {
    const of = (part: readonly Usage[] = []) => median(part.map((each) => each[name]));
    return of(thirds[2]) / of(thirds[0]);
  };
  const targets = [
    {
      name: "the service's own memory, last third : first",
      value: growth("residentMiB"),
      unit: "×",
      atMost: 1.05,
    },
    {
      name: "workers' memory, last third : first",
      value: growth("workersMiB"),
      unit: "×",
      atMost: 1.1,
    },
    { name: "workers, last third : first", value: growth("workers"), unit: "×", atMost: 1.1 },
    { name: "open files, last third : first", value: growth("files"), unit: "×", atMost: 1.1 },
    { name: "threads, last third : first", value: growth("threads"), unit: "×", atMost: 1.1 },
    { name: "wrong files", value: counters.wrong, unit: "", atMost: 0 },
  ];
  printTargets(targets);
  process.exitCode = targets.every(({ value, atMost }) => value <= atMost) ? 0 : 1;
}

await main();
