import { ServiceError } from "../../model/errors.ts";
import type { Download, DownloadContext, DownloadJob, Engine, EngineDeps, EngineObserver } from "../engine.ts";
import type { WorkerLimits } from "./worker/worker-limits.ts";
import { WorkerProcess, type WorkerProcessOptions } from "./worker/worker-process.ts";

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
  return new WorkerPool({
    data: { ...defaults, ...data },
    limits: { ...defaultLimits, ...limits },
    usage: new Map(),
    observer,
  });
}

/** An idle process is ended after this time. */
const idleMs = 10_000;

/** Worker processes, each with one download at a time. */
class WorkerPool implements Engine {
  readonly name = "native";
  readonly #options: WorkerProcessOptions;
  readonly #all = new Set<WorkerProcess>();
  readonly #idle = new Map<WorkerProcess, NodeJS.Timeout>();
  #isClosed = false;

  constructor(options: WorkerProcessOptions) {
    this.#options = options;
  }

  async download(job: DownloadJob, context: DownloadContext): Promise<Download> {
    const { signal } = context;
    signal.throwIfAborted();
    if (this.#isClosed) throw closedError();
    const worker = this.#acquire();
    try {
      return await worker.download(job, context);
    } catch (error) {
      signal.throwIfAborted();
      throw this.#isClosed ? closedError() : error;
    } finally {
      this.#release(worker);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#all].map((worker) => this.#end(worker)));
  }

  #acquire(): WorkerProcess {
    const worker = this.#idle.keys().find(({ isEnding }) => !isEnding);
    if (worker === undefined) return this.#start();
    this.#stopIdling(worker);
    return worker;
  }

  #start(): WorkerProcess {
    const worker = new WorkerProcess(this.#options);
    this.#all.add(worker);
    this.#options.observer?.onProcesses(this.#all.size);
    void this.#forgetOnceEnded(worker);
    return worker;
  }

  async #forgetOnceEnded(worker: WorkerProcess): Promise<void> {
    await worker.ended;
    this.#stopIdling(worker);
    this.#all.delete(worker);
    this.#options.observer?.onProcesses(this.#all.size);
  }

  #release(worker: WorkerProcess): void {
    if (worker.isEnding) return;
    const timer = setTimeout(() => void this.#end(worker), idleMs);
    this.#idle.set(worker, timer);
  }

  #stopIdling(worker: WorkerProcess): void {
    clearTimeout(this.#idle.get(worker));
    this.#idle.delete(worker);
  }

  /** A process that is ending gets no more work. */
  #end(worker: WorkerProcess): Promise<void> {
    this.#stopIdling(worker);
    return worker.end();
  }
}

function closedError(): ServiceError {
  return new ServiceError("unavailable", "the download engine is closed");
}
