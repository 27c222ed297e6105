import { Worker } from "node:worker_threads";
import { ServiceError } from "../../errors.ts";
import type { DownloadContext, DownloadJob, Engine, EngineDeps } from "../engine.ts";
import { deserializeError, type WorkerRequest, type WorkerMessage } from "./messages.ts";

/** Worker threads, each with one download at a time. */
export type WorkerPool = Omit<Engine, "name">;

/** A thread that has not stopped this long after an abort is terminated. */
const abortGraceMs = 700;

/** An idle thread is terminated after this time. */
const idleMs = 10_000;

/** `memoryLimitMb`: limit of each thread's JavaScript heap, MiB. */
export function createWorkerPool(data: EngineDeps, memoryLimitMb: number): WorkerPool {
  const all = new Set<Worker>();
  const idle = new Map<Worker, NodeJS.Timeout>();
  /** Threads that are ending and get no more work. */
  const exiting = new WeakSet<Worker>();
  let isClosed = false;

  function acquire(): Worker {
    const [worker] = idle.keys();
    if (worker === undefined) return start();
    clearTimeout(idle.get(worker));
    idle.delete(worker);
    return worker;
  }

  function start(): Worker {
    const worker = new Worker(new URL("./start-worker.js", import.meta.url), {
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: memoryLimitMb },
    });
    all.add(worker);
    // A running download has its own listeners; a crash of an idle thread needs no report.
    worker.on("error", () => retire(worker));
    worker.once("exit", () => {
      retire(worker);
      all.delete(worker);
    });
    return worker;
  }

  /** Called as soon as a thread begins to end: until then it looks like any other. */
  function retire(worker: Worker): void {
    exiting.add(worker);
    clearTimeout(idle.get(worker));
    idle.delete(worker);
  }

  async function terminate(worker: Worker): Promise<void> {
    retire(worker);
    await worker.terminate();
  }

  function release(worker: Worker): void {
    if (exiting.has(worker)) return;
    idle.set(
      worker,
      setTimeout(() => void terminate(worker), idleMs),
    );
  }

  return {
    async download(job, { signal, onProgress }) {
      signal.throwIfAborted();
      if (isClosed) throw closedError();
      const worker = acquire();
      try {
        const result = await runInWorker(worker, job, { signal, onProgress }, () =>
          terminate(worker),
        );
        release(worker);
        if (result.type === "done") return result.download;
        throw deserializeError(result.failure);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof ServiceError) throw error;
        throw isClosed ? closedError() : crashError(error, memoryLimitMb);
      }
    },

    async close() {
      isClosed = true;
      await Promise.all([...all].map(terminate));
    },
  };
}

type WorkerResult = Exclude<WorkerMessage, { type: "progress" }>;

/** Returns the worker's result; rejects with the thread's error if it ends without one. */
async function runInWorker(
  worker: Worker,
  job: DownloadJob,
  { signal, onProgress }: DownloadContext,
  terminate: () => Promise<void>,
): Promise<WorkerResult> {
  const { promise, resolve, reject } = Promise.withResolvers<WorkerResult>();
  let crash: unknown;
  let grace: NodeJS.Timeout | undefined;
  const send = (request: WorkerRequest) => worker.postMessage(request);
  const onMessage = (message: WorkerMessage) => {
    if (message.type === "progress") onProgress(message.progress);
    else resolve(message);
  };
  const onError = (error: unknown) => {
    crash = error;
  };
  const onExit = () => reject(crash);
  const onAbort = () => {
    send({ type: "abort" });
    grace = setTimeout(() => void terminate(), abortGraceMs);
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

function closedError(): ServiceError {
  return new ServiceError("unavailable", "the download engine is closed");
}

function crashError(cause: unknown, memoryLimitMb: number): ServiceError {
  const isMemory =
    cause instanceof Error && "code" in cause && cause.code === "ERR_WORKER_OUT_OF_MEMORY";
  const why = isMemory
    ? `it needed more than its limit of ${memoryLimitMb} MiB of memory`
    : "its thread ended before it was complete";
  return new ServiceError("internal", `the download crashed: ${why}`, { cause, retryable: false });
}
