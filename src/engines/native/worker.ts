import { readlinkSync } from "node:fs";
import { setPriority } from "node:os";
import { basename } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { createHttpClient } from "../../net/http-client.ts";
import type { DownloadJob, DownloadProgress } from "../engine.ts";
import { download } from "./download.ts";
import {
  serializeError,
  type WorkerRequest,
  type WorkerMessage,
  type WorkerData,
} from "./messages.ts";

/** The worker thread's own program: downloads what it is told to, one after the other. */
if (parentPort === null) throw new Error("worker.ts is the program of a worker thread");
const port = parentPort;
const data: WorkerData = workerData;
const niceness = 10;
const client = createHttpClient({
  allowNetworks: data.allowNetworks,
  perHost: data.concurrentFragments,
  idleTimeoutMs: data.idleTimeoutMs,
  totalTimeoutMs: Number.POSITIVE_INFINITY,
});
let running = new AbortController();
giveWay();

port.on("message", (order: WorkerRequest) => {
  if (order.type === "abort") return running.abort();
  running = new AbortController();
  void run(order.job, running.signal).then(report);
});

async function run(job: DownloadJob, signal: AbortSignal): Promise<WorkerMessage> {
  const progress = createPacer((latest) => report({ type: "progress", progress: latest }));
  const context = { ...data, client, signal, onProgress: progress.take };
  try {
    return { type: "done", download: await download(job, context) };
  } catch (error) {
    return { type: "failed", failure: serializeError(error) };
  } finally {
    progress.end();
  }
}

/**
 * Has the system prefer the thread that answers requests: Linux gives each thread a priority of its own.
 * Where that cannot be, all threads are alike.
 */
function giveWay(): void {
  try {
    setPriority(Number(basename(readlinkSync("/proc/thread-self"))), niceness);
  } catch {
    // No Linux, or not allowed.
  }
}

function report(message: WorkerMessage): void {
  port.postMessage(message);
}

const paceMs = 100;

/** Hands on the newest value every 100 ms where there is one, the first one and a new stage at once. */
function createPacer(hand: (progress: DownloadProgress) => void) {
  let waiting: DownloadProgress | undefined;
  let stage: string | undefined;
  let timer: NodeJS.Timeout | undefined;

  function next(): void {
    timer = undefined;
    if (waiting === undefined) return;
    hand(waiting);
    waiting = undefined;
    timer = setTimeout(next, paceMs);
  }

  return {
    take(progress: DownloadProgress): void {
      waiting = progress;
      if (progress.stage !== stage) clearTimeout(timer);
      if (timer === undefined || progress.stage !== stage) next();
      stage = progress.stage;
    },
    end(): void {
      clearTimeout(timer);
      waiting = undefined;
    },
  };
}
