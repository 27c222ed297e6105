import { format, median, printTable, type Target } from "../table.ts";
import { type Bench, segmentBytes } from "./part.ts";
import { type DownloadTimes, openBenchService } from "./service.ts";
import { flushDisk, timeCurl, timeCurlKept, timeFfmpeg } from "./tools.ts";

/** One file: until it is fetched, compared with curl; until it is kept, compared with curl, sync and sha256sum. */
export async function measureProgressive(bench: Bench): Promise<Target[]> {
  const url = `${bench.base}/${bench.maker.mp4("film", bench.largeBytes)}`;
  const { curl, kept } = await compare("one file", bench, url, {
    curl: { run: timeCurl, against: "fetched" },
    kept: { run: timeCurlKept, against: "kept" },
  });
  return [
    { name: "one file: curl : service, fetched", value: curl, unit: "×", atLeast: 0.8 },
    { name: "one file: curl, sync, sha256sum : service", value: kept, unit: "×", atLeast: 0.8 },
  ];
}

/** A stream of 300 segments at 50 ms per request. */
export async function measureStream(bench: Bench): Promise<Target[]> {
  const path = bench.maker.hls("many", bench.isQuick ? 60 : 300, 256 * 1024);
  const url = `${bench.base}/latency=50/${path}`;
  const { ffmpeg } = await compare("HLS, 50 ms per request", bench, url, {
    ffmpeg: { run: timeFfmpeg, against: "kept" },
  });
  return [{ name: "HLS, 50 ms: ffmpeg : service", value: ffmpeg, unit: "×", atLeast: 2 }];
}

export async function measureThroughput(bench: Bench): Promise<Target[]> {
  const path = bench.maker.hls("large", Math.ceil(bench.largeBytes / segmentBytes), segmentBytes);
  const { ffmpeg } = await compare("HLS", bench, `${bench.base}/${path}`, {
    ffmpeg: { run: timeFfmpeg, against: "kept" },
  });
  return [{ name: "HLS: ffmpeg : service", value: ffmpeg, unit: "×", atLeast: 0.25 }];
}

interface Tool {
  run: (url: string, folder: string) => number;
  /** The time of the service that it is compared with. */
  against: keyof DownloadTimes;
}

/** Times each tool and the service in every round; returns the median ratio tool : service within a round. */
async function compare<Name extends string>(
  title: string,
  { rounds, folder }: Bench,
  url: string,
  tools: Readonly<Record<Name, Tool>>,
): Promise<Record<Name, number>> {
  await using service = await openBenchService();
  const named = Object.entries<Tool>(tools);
  const ours: DownloadTimes[] = [];
  const theirs = named.map((): number[] => []);
  const runs = [
    async () => void ours.push(await service.download(url)),
    ...named.map(
      ([, { run }], i) =>
        async () =>
          void theirs[i]?.push(run(url, folder)),
    ),
  ];
  // The first run reads the media from the disk, later runs from the page cache.
  named[0]?.[1].run(url, folder);
  for (let round = 0; round < rounds; round++) {
    // The order changes, so that no tool always runs after the same other one.
    for (const [i] of runs.entries()) {
      // Unwritten data of one run must not slow down the next.
      flushDisk();
      await runs[(i + round) % runs.length]?.();
    }
  }
  const rows = [
    ["service, fetched", ours.map(({ fetched }) => fetched)] as const,
    ["service, kept", ours.map(({ kept }) => kept)] as const,
    ...named.map(([name], i) => [name, theirs[i] ?? []] as const),
  ];
  printTable(
    title,
    ["", "median s", ...ours.map((_, i) => `${i + 1}`)],
    rows.map(([name, seconds]) => [name, format(median(seconds)), ...seconds.map(format)]),
  );
  console.log(`peak resident memory of the service: ${format(service.peakMiB())} MiB`);
  const ratios = named.map(([name, { against }], i) => {
    const seconds = theirs[i] ?? [];
    return [name, median(seconds.map((each, n) => each / (ours[n]?.[against] ?? Number.NaN)))];
  });
  return Object.fromEntries(ratios) as Record<Name, number>;
}
