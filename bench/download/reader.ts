import { spawn } from "node:child_process";
import { once } from "node:events";
import { format, median, printTable, type Target } from "../table.ts";
import { type Bench, segmentBytes } from "./part.ts";
import { type BenchService, openBenchService } from "./service.ts";
import { flushDisk } from "./tools.ts";

interface Cost {
  seconds: number;
  /** Processor time of the service and its downloads, seconds. */
  processorS: number;
}

/** Downloads while one client reads the stream, compared with downloads that nobody watches. */
export async function measureReader({ base, maker, largeBytes, rounds }: Bench): Promise<Target[]> {
  const film = maker.mp4("watched", largeBytes);
  const stream = maker.hls("watched", Math.ceil(largeBytes / segmentBytes), segmentBytes);
  const targets: Target[] = [];
  await using service = await openBenchService();
  for (const [name, path] of [
    ["one file", film],
    ["HLS", stream],
  ] as const) {
    const alone: Cost[] = [];
    const watched: Cost[] = [];
    const page = `${base}/${path}`;
    await measure(service, page, false);
    for (let round = 0; round < rounds; round++) {
      const isFirst = round % 2 === 0;
      for (const isWatched of [isFirst, !isFirst]) {
        flushDisk();
        (isWatched ? watched : alone).push(await measure(service, page, isWatched));
      }
    }
    const row = (title: string, costs: readonly Cost[], field: keyof Cost) => {
      const values = costs.map((cost) => cost[field]);
      return [title, format(median(values)), ...values.map(format)];
    };
    printTable(
      `${name}, with a reader and without`,
      ["", "median", ...alone.map((_, i) => `${i + 1}`)],
      [
        row("alone, s", alone, "seconds"),
        row("read, s", watched, "seconds"),
        row("alone, processor s", alone, "processorS"),
        row("read, processor s", watched, "processorS"),
      ],
    );
    const ratio = (field: keyof Cost) => median(alone.map((cost, i) => cost[field] / watched[i]![field]));
    targets.push({ name: `${name}: alone : with a reader`, value: ratio("seconds"), unit: "×", atLeast: 0.9 });
    targets.push({
      name: `${name}: alone : with a reader, processor time`,
      value: ratio("processorS"),
      unit: "×",
      atLeast: 0.75,
    });
  }
  return targets;
}

async function measure(service: BenchService, page: string, isWatched: boolean): Promise<Cost> {
  const startS = service.processorS();
  const { kept } = await service.download(page, async (id) => {
    if (isWatched) await read(`${service.url}/tasks/${id}/stream`);
  });
  return { seconds: kept, processorS: service.processorS() - startS };
}

/** Another process reads as fast as it can. */
async function read(url: string): Promise<void> {
  const curl = spawn("curl", ["-sSf", "-o", "/dev/null", url], { stdio: "inherit" });
  const [code] = await once(curl, "close");
  if (code !== 0) throw new Error(`curl ended with ${code}`);
}
