import type { Engine } from "./engine.ts";
import { createWorkerPool } from "./native/worker-pool.ts";

export interface NativeEngineOptions {
  /** Networks that may be fetched although they are not public: CIDR blocks with commas between. */
  allowNetworks?: string;
  /** Requests at a time of one download to one host; default 6. */
  concurrentFragments?: number;
  /** Longest wait for the next byte; default 30 s. */
  idleTimeoutMs?: number;
  /** Room to leave on the disk, bytes; default none. */
  minFreeBytes?: number;
  /** Memory of one download's JavaScript objects, MiB; a download that needs more fails. Default 512. */
  memoryLimitMb?: number;
}

/**
 * Downloads with nothing but this process: progressive files, HLS and DASH. Each download has a worker
 * thread to itself with a guarded client of its own, so that neither its work nor its crash is felt
 * elsewhere.
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
