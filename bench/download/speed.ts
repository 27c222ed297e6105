import { format, median, printTable, type Target } from "../table.ts";
import { type Bench, segmentBytes } from "./part.ts";
import { openBenchService } from "./service.ts";
import { timeCurl, timeCurlKept, timeFfmpeg } from "./tools.ts";

/** One file: against curl, and curl with what the service does besides. */
export async function measureProgressive(bench: Bench): Promise<Target[]> {
  const url = `${bench.base}/${bench.maker.mp4("film", bench.largeBytes)}`;
  const times = await compare("one file", bench, url, { curl: timeCurl, kept: timeCurlKept });
  return [
    { name: "one file: curl : service", value: times["curl"]!, unit: "×", atLeast: 0.8 },
    {
      name: "one file: curl, sync, sha256sum : service",
      value: times["kept"]!,
      unit: "×",
      atLeast: 0.8,
    },
  ];
}

/** 300 segments, 50 ms a request. */
export async function measureStream(bench: Bench): Promise<Target[]> {
  const path = bench.maker.hls("many", bench.isQuick ? 60 : 300, 256 * 1024);
  const url = `${bench.base}/latency=50/${path}`;
  const times = await compare("HLS, 50 ms a request", bench, url, { ffmpeg: timeFfmpeg });
  return [{ name: "HLS, 50 ms: ffmpeg : service", value: times["ffmpeg"]!, unit: "×", atLeast: 2 }];
}

export async function measureThroughput(bench: Bench): Promise<Target[]> {
  const path = bench.maker.hls("large", Math.ceil(bench.largeBytes / segmentBytes), segmentBytes);
  const times = await compare("HLS", bench, `${bench.base}/${path}`, { ffmpeg: timeFfmpeg });
  return [{ name: "HLS: ffmpeg : service", value: times["ffmpeg"]!, unit: "×", atLeast: 0.25 }];
}

type Tool = (url: string, folder: string) => number;

/** Seconds of each, a round after another; gives the medians of tool : service within a round. */
async function compare(
  title: string,
  { rounds, folder }: Bench,
  url: string,
  tools: Readonly<Record<string, Tool>>,
): Promise<Record<string, number>> {
  await using service = await openBenchService();
  const ours: number[] = [];
  const theirs = Object.keys(tools).map((): number[] => []);
  // What the first run of all reads from the disk, later ones find in memory.
  Object.values(tools)[0]?.(url, folder);
  for (let round = 0; round < rounds; round++) {
    ours.push(await service.download(url));
    for (const [i, tool] of Object.values(tools).entries()) theirs[i]?.push(tool(url, folder));
  }
  const rows = [
    ["service", ours] as const,
    ...Object.keys(tools).map((name, i) => [name, theirs[i] ?? []] as const),
  ];
  printTable(
    title,
    ["", "median s", ...ours.map((_, i) => `${i + 1}`)],
    rows.map(([name, seconds]) => [name, format(median(seconds)), ...seconds.map(format)]),
  );
  console.log(`peak resident memory of the service: ${format(service.peakMiB())} MiB`);
  const ratio = (seconds: readonly number[]) =>
    median(seconds.map((each, i) => each / (ours[i] ?? Number.NaN)));
  return Object.fromEntries(Object.keys(tools).map((name, i) => [name, ratio(theirs[i] ?? [])]));
}
