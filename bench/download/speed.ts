import { format, median, printTable, type Target } from "../table.ts";
import { type Bench, segmentBytes } from "./part.ts";
import { openBenchService } from "./service.ts";
import { flushDisk, timeCurl, timeCurlKept, timeFfmpeg } from "./tools.ts";

/** Seconds from POST. */
interface DownloadTimes {
  /** Until the server had sent all bytes. */
  fetched: number;
  kept: number;
}

/** One file: until it is fetched, compared with curl; until it is kept, compared with curl, sync and sha256sum. */
export async function measureProgressive(bench: Bench): Promise<Target[]> {
  const url = `${bench.base}/${bench.maker.mp4("film", bench.largeBytes)}`;
  const { curl, kept } = await compare("one file", bench, url, {
    curl: timeCurl,
    kept: timeCurlKept,
  });
  return [
    { name: "one file: curl : service, fetched", value: curl.fetched, unit: "×", atLeast: 0.8 },
    { name: "one file: curl, sync, sha256sum : service", value: kept.kept, unit: "×", atLeast: 0.8 },
  ];
}

/** A stream of 300 segments at 50 ms per request. */
export async function measureStream(bench: Bench): Promise<Target[]> {
  const path = bench.maker.hls("many", bench.isQuick ? 60 : 300, 256 * 1024);
  const url = `${bench.base}/latency=50/${path}`;
  const { ffmpeg } = await compare("HLS, 50 ms per request", bench, url, { ffmpeg: timeFfmpeg });
  return [{ name: "HLS, 50 ms: ffmpeg : service", value: ffmpeg.kept, unit: "×", atLeast: 2 }];
}

export async function measureThroughput(bench: Bench): Promise<Target[]> {
  const path = bench.maker.hls("large", Math.ceil(bench.largeBytes / segmentBytes), segmentBytes);
  const { ffmpeg } = await compare("HLS", bench, `${bench.base}/${path}`, { ffmpeg: timeFfmpeg });
  return [
    { name: "HLS: ffmpeg : service, fetched", value: ffmpeg.fetched, unit: "×", atLeast: 0.8 },
    { name: "HLS: ffmpeg : service, kept", value: ffmpeg.kept, unit: "×", atLeast: 0.25 },
  ];
}

/** Returns the seconds that a tool takes. */
type Tool = (url: string, folder: string) => number;

/** Times each tool and the service in every round; returns the median ratios tool : service within a round. */
async function compare<Name extends string>(
  title: string,
  { rounds, folder, lastSentMs }: Bench,
  url: string,
  tools: Readonly<Record<Name, Tool>>,
): Promise<Record<Name, DownloadTimes>> {
  await using service = await openBenchService();
  const named = Object.entries<Tool>(tools);
  const ours: DownloadTimes[] = [];
  const theirs = named.map((): number[] => []);
  const runs = [
    async () => {
      const { startMs, kept } = await service.download(url);
      ours.push({ fetched: ((await lastSentMs()) - startMs) / 1000, kept });
    },
    ...named.map(
      ([, run], i) =>
        async () =>
          void theirs[i]?.push(run(url, folder)),
    ),
  ];
  // The first run reads the media from the disk, later runs from the page cache.
  named[0]?.[1](url, folder);
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
  const ratios = named.map(([name], i) => {
    const ratio = (of: keyof DownloadTimes) =>
      median(ours.map((times, n) => (theirs[i]?.[n] ?? Number.NaN) / times[of]));
    return [name, { fetched: ratio("fetched"), kept: ratio("kept") }];
  });
  return Object.fromEntries(ratios) as Record<Name, DownloadTimes>;
}
