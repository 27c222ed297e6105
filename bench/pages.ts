import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { openReader } from "../src/resolvers/page/reader/reader-pool.ts";
import { readSavedPages, resolveSavedPage, type SavedPage } from "./saved-pages.ts";

/**
 * Resolves every saved page of a directory from its bytes, without a network, as the service does: in a reader process:
 * `node bench/pages.ts DIR [ROUNDS]`. DIR/pages.json lists `{file, url, encoding}`. Prints a JSON line a page,
 * `{file, info, ms}`, on stdout and a line a round on stderr. `ms` is the median over the ROUNDS (5) of
 * the CPU time of both processes, including the compiler's and the garbage collector's threads. There is no
 * warm-up: the first round shows processes that have just started.
 */
async function main(directory: string, rounds: number): Promise<void> {
  const pages = await readSavedPages(directory);
  // A service does that at its first start.
  execFileSync(process.execPath, [fileURLToPath(new URL("../src/system/bundle-programs.ts", import.meta.url))]);
  const reader = openReader();
  const results = pages.map(({ file }) => ({ file, info: null as unknown, times: [] as number[] }));
  for (let round = 0; round < rounds; round++) {
    for (const [index, page] of pages.entries()) {
      const result = results[index];
      if (result === undefined) continue;
      const othersBefore = childrenMs();
      const before = process.cpuUsage();
      result.info = await resolveSavedPage(page, reader);
      const { user, system } = process.cpuUsage(before);
      result.times.push((user + system) / 1000 + childrenMs() - othersBefore);
    }
    summarize(round, results, pages);
  }
  await reader.close();
  for (const { file, info, times } of results) {
    console.log(JSON.stringify({ file, info, ms: median(times) }));
  }
}

function summarize(round: number, results: { times: number[] }[], pages: SavedPage[]): void {
  const times = results.map((result) => result.times[round] ?? 0);
  const total = times.reduce((sum, ms) => sum + ms, 0);
  const megabytes = pages.reduce((sum, { bytes }) => sum + bytes.length, 0) / 1e6;
  const rate = (1000 * pages.length) / total;
  console.error(
    `round ${round + 1}: ${pages.length} pages, ${megabytes.toFixed(1)} MB, ${total.toFixed(0)} ms CPU, ` +
      `${rate.toFixed(0)} pages/s, ${((1000 * megabytes) / total).toFixed(0)} MB/s, median ${median(times).toFixed(2)} ms`,
  );
}

/** Returns the CPU time of all threads of the processes that this one has started, milliseconds; 0 without /proc. */
function childrenMs(): number {
  let sum = 0;
  try {
    const children = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").split(" ").filter(Boolean);
    for (const pid of children) {
      for (const thread of readdirSync(`/proc/${pid}/task`)) {
        sum += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1e6;
      }
    }
  } catch {
    return sum;
  }
  return sum;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

const [directory, rounds = "5"] = process.argv.slice(2);
if (directory === undefined) {
  console.error("usage: node bench/pages.ts DIR [ROUNDS]");
  process.exitCode = 2;
} else {
  await main(directory, Number(rounds));
}
