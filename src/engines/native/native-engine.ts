import type { Engine, EngineDeps, EngineObserver } from "../engine.ts";
import type { WorkerLimits } from "./worker/worker-limits.ts";
import { createWorkerPool } from "./worker/worker-pool.ts";

export interface NativeEngineOptions extends Partial<EngineDeps> {
  /** Limits of each worker process; a download that exceeds one fails. */
  limits?: Partial<WorkerLimits>;
  /** Default: nobody observes. */
  observer?: EngineObserver | undefined;
}

const defaults: EngineDeps = {
  allowNetworks: "",
  concurrentFragments: 6,
  idleTimeoutMs: 30_000,
  minSpeedBps: 0,
  minFreeBytes: 0,
  environment: {},
};

/** An ordinary download has 100 to 200 MiB. */
const defaultLimits: WorkerLimits = {
  heapMiB: 512,
  residentMiB: 768,
  totalMiB: 640,
  shareMiB: 256,
  silenceMs: 20_000,
  workMs: 10_000,
};

/**
 * Downloads progressive files, HLS and DASH without other programs. Each download has its own worker process
 * and guarded client, so that its work and its crash affect nothing else.
 */
export function createNativeEngine(options: NativeEngineOptions = {}): Engine {
  const { limits, observer, ...data } = options;
  const pool = createWorkerPool(
    { ...defaults, ...data },
    { ...defaultLimits, ...limits },
    observer,
  );
  return { name: "native", ...pool };
}
