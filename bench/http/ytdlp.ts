import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { childrenOf } from "../../test/process/child-processes.ts";
import { startService } from "../../test/process/service.ts";
import { installed } from "../../test/resolvers/ytdlp/installed.ts";
import { median } from "../table.ts";

export interface YtDlpTimes {
  /** `GET /info` through yt-dlp, one at a time. */
  infoMs: number;
  /** Four of them at once, until the last one. */
  fourMs: number;
  /** `yt-dlp -J` for the same page. */
  bareMs: number;
  /** Memory of the process that forks the others, what it shares with them included. */
  sharedMiB: number;
}

const rounds = 15;

/** Measures a page of a local site; the ways take turns. Returns medians; undefined without yt-dlp (YTDLP). */
export async function measureYtDlp(dataDir: string): Promise<YtDlpTimes | undefined> {
  if (installed === undefined) return undefined;
  await using site = await openVideoPage();
  const { url } = site;
  const service = await startService({
    DATA_DIR: dataDir,
    RESOLVER: "yt-dlp",
    YTDLP: installed.script,
    ALLOW_NETWORKS: "127.0.0.0/8",
    INFO_CACHE_TTL_S: "0",
  });
  try {
    let count = 0;
    // Concurrent requests for one URL would share one read.
    const info = async () => {
      const page = encodeURIComponent(`${url}?v=${(count += 1)}`);
      const response = await fetch(`${service.url}/info?url=${page}`);
      const text = await response.text();
      if (!text.includes('"yt-dlp"')) throw new Error(`/info answered ${response.status}: ${text}`);
    };
    const bare = () => promisify(execFile)(installed!.script, ["--ignore-config", "-J", url]);
    await info();
    const times: Record<"info" | "four" | "bare", number[]> = { info: [], four: [], bare: [] };
    for (let round = 0; round < rounds; round++) {
      times.info.push(await timeOf(info));
      times.four.push(await timeOf(() => Promise.all([1, 2, 3, 4].map(() => info()))));
      if (round % 3 === 0) times.bare.push(await timeOf(bare));
    }
    return {
      infoMs: median(times.info),
      fourMs: median(times.four),
      bareMs: median(times.bare),
      sharedMiB: serverMiB(service.process.pid!),
    };
  } finally {
    await service.end("SIGTERM");
  }
}

async function timeOf(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

/** Returns the memory of Python's process among the children of `pid`; NaN without /proc. */
function serverMiB(pid: number): number {
  const server = childrenOf(pid).find((child) =>
    readFileSync(`/proc/${child}/cmdline`, "utf8").includes("fork_server.py"),
  );
  if (server === undefined) return Number.NaN;
  const [, kB] = /^Rss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${server}/smaps_rollup`, "utf8")) ?? [];
  return Number(kB ?? Number.NaN) / 1024;
}

async function openVideoPage(): Promise<AsyncDisposable & { url: string }> {
  const page = '<!doctype html><title>A film</title><video src="/film.mp4" poster="/a.jpg"></video>';
  const server = createServer((_, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8").end(page);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/watch`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}
