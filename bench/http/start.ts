import { existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { startService } from "../../test/process/service.ts";

export interface Start {
  /** From spawn to the first 200 of /health/ready. */
  readyMs: number;
  /** Resident memory once it no longer changes; NaN without /proc. */
  idleMiB: number;
}

/** Starts the real program on `dataDir`, waits until it is ready and idle, and stops it. */
export async function measureStart(dataDir: string): Promise<Start> {
  const start = performance.now();
  const service = await startService({ DATA_DIR: dataDir, LOG_LEVEL: "info", CONCURRENCY: "0" });
  try {
    const { status } = await fetch(`${service.url}/health/ready`);
    const readyMs = performance.now() - start;
    if (status !== 200) throw new Error(`/health/ready answered ${status}`);
    return { readyMs, idleMiB: await settledMiB(service.process.pid) };
  } finally {
    await service.end("SIGTERM");
  }
}

/** Reads every half second until two readings differ by less than 1 %, at most ten times. */
async function settledMiB(pid: number | undefined): Promise<number> {
  let last = Number.NaN;
  for (let reading = 0; reading < 10; reading++) {
    const now = residentMiB(pid);
    if (Number.isNaN(now) || Math.abs(now - last) < last / 100) return now;
    last = now;
    await sleep(500);
  }
  return last;
}

function residentMiB(pid: number | undefined): number {
  const file = `/proc/${pid}/status`;
  const line = existsSync(file) ? /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(file, "utf8")) : null;
  return Number(line?.[1] ?? Number.NaN) / 1024;
}
