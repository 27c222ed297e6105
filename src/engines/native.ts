import type { Engine, EngineDeps } from "./engine.ts";
import { createWorkerPool } from "./native/worker-pool.ts";

export interface NativeEngineOptions extends Partial<EngineDeps> {
  /** Limit of one download's JavaScript heap, MiB; default 512. A download that needs more fails. */
  memoryLimitMb?: number;
}

const defaults: EngineDeps = {
  allowNetworks: "",
  concurrentFragments: 6,
  idleTimeoutMs: 30_000,
  minSpeedBps: 0,
  minFreeBytes: 0,
};

/**
 * Downloads progressive files, HLS and DASH without other programs. Each download has its own worker thread
 * and guarded client, so that its work and its crash affect nothing else.
 */
export function createNativeEngine(options: NativeEngineOptions = {}): Engine {
  const { memoryLimitMb = 512, ...data } = options;
  return { name: "native", ...createWorkerPool({ ...defaults, ...data }, memoryLimitMb) };
}
