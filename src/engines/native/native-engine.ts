import { ServiceError } from "../../model/errors.ts";
import { ProcessPool } from "../../system/process-pool.ts";
import { HostPauses } from "../../net/host-pauses.ts";
import { SpeedLimit } from "../../net/speed-limit.ts";
import type { Engine, EngineDeps, EngineShared } from "../engine.ts";
import type { WorkerLimits } from "./worker/worker-limits.ts";
import { WorkerProcess } from "./worker/worker-process.ts";

interface NativeEngineOptions extends Partial<EngineDeps>, EngineShared {
  /** Limits of each worker process; a download that exceeds one fails. */
  limits?: Partial<WorkerLimits>;
}

const defaults: EngineDeps = {
  allowNetworks: [],
  concurrentFragments: 6,
  idleTimeoutMs: 30_000,
  minSpeedBps: 0,
  minFreeBytes: 0,
  maxSpeedBps: 0,
  maxSpeedPerHostBps: 0,
  environment: {},
};

/** An ordinary download has 100 to 200 MiB. */
const defaultLimits: WorkerLimits = {
  heapMiB: 512,
  residentMiB: 768,
  totalMiB: 640,
  shareMiB: 256,
  keptMiB: 160,
  silenceMs: 20_000,
  workMs: 10_000,
};

/**
 * Downloads progressive files, HLS and DASH without other programs. Each download has its own worker process
 * and guarded client, so that its work and its crash affect nothing else.
 */
export function createNativeEngine(options: NativeEngineOptions = {}): Engine {
  const { limits, observer, pauses = new HostPauses(), speed, ...deps } = options;
  const data = { ...defaults, ...deps };
  const workerOptions = {
    data,
    limits: { ...defaultLimits, ...limits },
    usage: new Map<number, number>(),
    observer,
    pauses,
    speed: speed ?? new SpeedLimit(data),
  };
  const pool = new ProcessPool({
    start: () => new WorkerProcess(workerOptions),
    idleMs,
    onSize: (count) => observer?.onProcesses(count),
    closedError: () => new ServiceError("unavailable", "the download engine is closed"),
  });
  return {
    prepare: () => pool.prepare(),
    async download(job, context) {
      context.signal.throwIfAborted();
      try {
        return await pool.use((worker) => worker.download(job, context));
      } catch (error) {
        context.signal.throwIfAborted();
        throw error;
      }
    },
    close: () => pool.close(),
  };
}

/** An idle process is ended after this time. */
const idleMs = 10_000;
