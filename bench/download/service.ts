import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { childrenOf, processorMsOfTree } from "../../test/process/child-processes.ts";
import { openTaskClient, type TaskClient } from "../../test/process/download-client.ts";
import { type ServiceProcess, startService } from "../../test/process/service.ts";

/** The real service on its own data folder. */
export interface BenchService extends AsyncDisposable {
  url: string;
  client: TaskClient;
  process: ServiceProcess["process"];
  /** Downloads the media of `page`, then deletes the task once `onTask` has resolved, which is called with its id. */
  download(page: string, onTask?: (id: string) => Promise<void>): Promise<Download>;
  /** Processor time that the service and its downloads have used, seconds; NaN without /proc. */
  processorS(): number;
  /**
   * Largest resident memory so far, MiB (VmHWM): the service's, plus that of each worker process which is
   * alive; NaN without /proc.
   */
  peakMiB(): number;
  /** Resident memory of the service and its worker processes, MiB. */
  residentMiB(): number;
  /** What the service itself uses, and its worker processes. */
  usage(): Usage;
  /** Event-loop delays since the last call, milliseconds. */
  loopDelays(): Promise<LoopDelays>;
}

export interface Usage {
  residentMiB: number;
  files: number;
  threads: number;
  workers: number;
  workersMiB: number;
}

export interface Download {
  /** When it began, milliseconds since 1970. */
  startMs: number;
  /** Seconds from POST until the task had succeeded: file read back, hashed and flushed to the disk. */
  kept: number;
}

export interface LoopDelays {
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
}

export async function openBenchService(env: Record<string, string> = {}): Promise<BenchService> {
  const dataDir = mkdtempSync(join(tmpdir(), "unreel-bench-data-"));
  const delaysFile = join(dataDir, "loop-delays.json");
  const service = await startService({
    DATA_DIR: dataDir,
    ALLOW_NETWORKS: "127.0.0.1/32",
    MIN_FREE_BYTES: "0",
    NODE_OPTIONS: `--import=${new URL("loop-delays.ts", import.meta.url).href}`,
    LOOP_DELAYS_FILE: delaysFile,
    ...env,
  });
  const client = await openTaskClient(service.url);
  const { pid = 0 } = service.process;
  return {
    url: service.url,
    client,
    process: service.process,
    async download(page, onTask = async () => {}) {
      const postedMs = performance.now();
      const { id } = await client.post(page);
      const watching = onTask(id);
      const task = await client.ended(id);
      const kept = (performance.now() - postedMs) / 1000;
      if (task.state !== "succeeded") {
        throw new Error(`${page} ended as ${task.state}: ${task.error?.message}`);
      }
      await watching;
      await client.request("DELETE", id);
      return { startMs: performance.timeOrigin + postedMs, kept };
    },
    peakMiB: () => memory(pid, "VmHWM") + memoryOfAll(childrenOf(pid), "VmHWM"),
    residentMiB: () => memory(pid, "VmRSS") + memoryOfAll(childrenOf(pid), "VmRSS"),
    processorS: () => [pid, ...childrenOf(pid)].reduce((sum, each) => sum + processorMsOfTree(each), 0) / 1000,
    usage() {
      const workers = childrenOf(pid);
      return {
        residentMiB: memory(pid, "VmRSS"),
        files: count(`/proc/${pid}/fd`),
        threads: count(`/proc/${pid}/task`),
        workers: workers.length,
        workersMiB: memoryOfAll(workers, "VmRSS"),
      };
    },
    async loopDelays() {
      rmSync(delaysFile, { force: true });
      service.process.kill("SIGWINCH");
      while (!existsSync(delaysFile)) await wait(10);
      return JSON.parse(readFileSync(delaysFile, "utf8")) as LoopDelays;
    },
    async [Symbol.asyncDispose]() {
      client.close();
      await service.end("SIGTERM");
      rmSync(dataDir, { recursive: true });
    },
  };
}

/** A process that has ended since counts nothing. */
function memoryOfAll(pids: readonly number[], name: string): number {
  return pids.reduce((sum, pid) => sum + (memory(pid, name) || 0), 0);
}

function memory(pid: number, name: string): number {
  const file = `/proc/${pid}/status`;
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const line = text.split("\n").find((each) => each.startsWith(`${name}:`));
  return Number(/\d+/.exec(line ?? "")?.[0] ?? Number.NaN) / 1024;
}

function count(folder: string): number {
  return existsSync(folder) ? readdirSync(folder).length : Number.NaN;
}
