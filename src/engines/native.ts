import type { Engine } from "./engine.ts";
import { createWorkerPool } from "./native/worker-pool.ts";

export interface NativeEngineOptions {
  /** Private networks that may be fetched: comma-separated CIDR blocks. Default none. */
  allowNetworks?: string;
  /** Concurrent requests of one download to one host; default 6. */
  concurrentFragments?: number;
  /** Longest wait for the next byte; default 30,000. */
  idleTimeoutMs?: number;
  /** Disk space to keep free; default 0. */
  minFreeBytes?: number;
  /** Limit of one download's JavaScript heap, MiB; default 512. A download that needs more fails. */
  memoryLimitMb?: number;
}

/**
 * Downloads progressive files, HLS and DASH without other programs. Each download has its own worker thread
 * and guarded client, so that its work and its crash affect nothing else.
 */
export function createNativeEngine(options: NativeEngineOptions = {}): Engine {
  const workers = createWorkerPool({
    data: {
      allowNetworks: options.allowNetworks ?? "",
      concurrentFragments: options.concurrentFragments ?? 6,
      idleTimeoutMs: options.idleTimeoutMs ?? 30_000,
      minFreeBytes: options.minFreeBytes ?? 0,
    },
    memoryLimitMb: options.memoryLimitMb ?? 512,
  });
  return {
    name: "native",
    download: (job, context) => workers.run(job, context),
    close: () => workers.close(),
  };
}
