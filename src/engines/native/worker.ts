import { readlinkSync } from "node:fs";
import { setPriority } from "node:os";
import { basename } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { createHttpClient } from "../../net/http-client.ts";
import type { DownloadJob, DownloadProgress, EngineDeps } from "../engine.ts";
import { download } from "./download.ts";
import { serializeError, type WorkerRequest, type WorkerMessage } from "./messages.ts";

/** Program of a worker thread: runs one requested download at a time. */
if (parentPort === null) throw new Error("worker.ts is the program of a worker thread");
const port = parentPort;
const data: EngineDeps = workerData;
const niceness = 10;
const client = createHttpClient({
  allowNetworks: data.allowNetworks,
  perHost: data.concurrentFragments,
  idleTimeoutMs: data.idleTimeoutMs,
  minSpeedBps: data.minSpeedBps,
  totalTimeoutMs: Number.POSITIVE_INFINITY,
});
let running = new AbortController();
lowerPriority();

port.on("message", (request: WorkerRequest) => {
  if (request.type === "abort") return running.abort();
  running = new AbortController();
  void run(request.job, running.signal).then(send);
});

async function run(job: DownloadJob, signal: AbortSignal): Promise<WorkerMessage> {
  const throttle = createThrottle((progress) => send({ type: "progress", progress }));
  const context = { ...data, client, signal, onProgress: throttle.push };
  try {
    return { type: "done", download: await download(job, context) };
  } catch (error) {
    return { type: "failed", failure: serializeError(error) };
  } finally {
    throttle.stop();
  }
}

/** Makes the system prefer the thread that serves requests; on Linux each thread has its own priority. */
function lowerPriority(): void {
  try {
    setPriority(Number(basename(readlinkSync("/proc/thread-self"))), niceness);
  } catch {
    // Not Linux, or not permitted.
  }
}

function send(message: WorkerMessage): void {
  port.postMessage(message);
}

const intervalMs = 100;

/** Emits the newest pushed value at most every 100 ms, but the first one and a new stage at once. */
function createThrottle(emit: (progress: DownloadProgress) => void) {
  let pending: DownloadProgress | undefined;
  let stage: string | undefined;
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    timer = undefined;
    if (pending === undefined) return;
    emit(pending);
    pending = undefined;
    timer = setTimeout(flush, intervalMs);
  }

  return {
    push(progress: DownloadProgress): void {
      pending = progress;
      if (progress.stage !== stage) clearTimeout(timer);
      if (timer === undefined || progress.stage !== stage) flush();
      stage = progress.stage;
    },
    stop(): void {
      clearTimeout(timer);
      pending = undefined;
    },
  };
}
