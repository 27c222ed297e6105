import { Worker } from "node:worker_threads";
import { ServiceError } from "../../errors.ts";
import type { Download, DownloadContext, DownloadJob } from "../engine.ts";
import {
  deserializeError,
  type WorkerRequest,
  type WorkerMessage,
  type WorkerData,
} from "./messages.ts";

export interface WorkerPoolOptions {
  data: WorkerData;
  memoryLimitMb: number;
}

/** Worker threads that download, one download each at a time. */
export interface WorkerPool {
  /** As `Engine.download`; a thread that crashes fails its download with `internal`. */
  run(job: DownloadJob, context: DownloadContext): Promise<Download>;
  /** Ends all threads, and with them what they do; safe to call twice. */
  close(): Promise<void>;
}

/** A thread that has not stopped so long after an abort is ended. */
const abortGraceMs = 700;

/** A thread without work is ended after this time. */
const idleMs = 10_000;

export function createWorkerPool({ data, memoryLimitMb }: WorkerPoolOptions): WorkerPool {
  const all = new Set<Worker>();
  const idle = new Map<Worker, NodeJS.Timeout>();
  /** Threads on their way out, which take no more work. */
  const exiting = new WeakSet<Worker>();
  let isClosed = false;

  function take(): Worker {
    const [spare] = idle.keys();
    if (spare === undefined) return start();
    clearTimeout(idle.get(spare));
    idle.delete(spare);
    return spare;
  }

  function start(): Worker {
    const worker = new Worker(new URL("./start-worker.js", import.meta.url), {
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: memoryLimitMb },
    });
    all.add(worker);
    // Whoever waits for it has listeners of their own; a crash while idle costs nobody anything.
    worker.on("error", () => retire(worker));
    worker.once("exit", () => {
      retire(worker);
      all.delete(worker);
    });
    return worker;
  }

  /** From the first sign of its end on: until it has ended it looks like any other. */
  function retire(worker: Worker): void {
    exiting.add(worker);
    clearTimeout(idle.get(worker));
    idle.delete(worker);
  }

  async function end(worker: Worker): Promise<void> {
    retire(worker);
    await worker.terminate();
  }

  function giveBack(worker: Worker): void {
    if (exiting.has(worker)) return;
    idle.set(
      worker,
      setTimeout(() => void end(worker), idleMs),
    );
  }

  return {
    async run(job, { signal, onProgress }) {
      signal.throwIfAborted();
      if (isClosed) throw closed();
      const worker = take();
      try {
        const report = await runInWorker(worker, job, { signal, onProgress }, () => end(worker));
        giveBack(worker);
        if (report.type === "done") return report.download;
        throw deserializeError(report.failure);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof ServiceError) throw error;
        throw isClosed ? closed() : crashed(error, memoryLimitMb);
      }
    },

    async close() {
      isClosed = true;
      await Promise.all([...all].map(end));
    },
  };
}

/** Gives the last report; rejects with the thread's error where it ends without one. */
async function runInWorker(
  worker: Worker,
  job: DownloadJob,
  { signal, onProgress }: DownloadContext,
  end: () => Promise<void>,
): Promise<Exclude<WorkerMessage, { type: "progress" }>> {
  const { promise, resolve, reject } =
    Promise.withResolvers<Exclude<WorkerMessage, { type: "progress" }>>();
  let crash: unknown;
  let grace: NodeJS.Timeout | undefined;
  const send = (order: WorkerRequest) => worker.postMessage(order);
  const onMessage = (report: WorkerMessage) => {
    if (report.type === "progress") onProgress(report.progress);
    else resolve(report);
  };
  const onError = (error: unknown) => {
    crash = error;
  };
  const onExit = () => reject(crash);
  const onAbort = () => {
    send({ type: "abort" });
    grace = setTimeout(() => void end(), abortGraceMs);
  };
  worker.on("message", onMessage).once("error", onError).once("exit", onExit);
  signal.addEventListener("abort", onAbort, { once: true });
  send({ type: "download", job });
  try {
    return await promise;
  } finally {
    clearTimeout(grace);
    signal.removeEventListener("abort", onAbort);
    worker.off("message", onMessage).off("error", onError).off("exit", onExit);
  }
}

function closed(): ServiceError {
  return new ServiceError("unavailable", "the download engine is closed");
}

function crashed(cause: unknown, memoryLimitMb: number): ServiceError {
  const isMemory =
    cause instanceof Error && "code" in cause && cause.code === "ERR_WORKER_OUT_OF_MEMORY";
  const why = isMemory
    ? `it needed more than its limit of ${memoryLimitMb} MiB of memory`
    : "its thread ended before it was done";
  return new ServiceError("internal", `the download crashed: ${why}`, { cause, retryable: false });
}
