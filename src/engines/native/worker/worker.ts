import { setPriority } from "node:os";
import { untilAborted } from "../../../async/deadline.ts";
import { endWithParent, yieldMemory } from "../../../system/child-process.ts";
import { serializeError } from "../../../model/errors.ts";
import { HostPauses } from "../../../net/host-pauses.ts";
import { createHttpClient, withCookies } from "../../../net/http/http-client.ts";
import type { DownloadJob, DownloadProgress, EngineDeps } from "../../engine.ts";
import { download } from "../download.ts";
import { maxWaitS } from "../parts/retry-policy.ts";
import type { WorkerRequest, WorkerMessage } from "./messages.ts";

/** Program of a worker process: runs one requested download at a time. */
const { argv } = process;
if (!process.connected) throw new Error("worker.ts is the program of a worker process");
const data = JSON.parse(argv[2] ?? "") as EngineDeps;
const niceness = 10;
const aliveMs = 1_000;
const pauses = new HostPauses((isWaiting) => send({ type: "waiting", isWaiting }));
pauses.subscribe((pause) => send({ type: "pause", pause }));
const grants = createGrants();
const isLimited = data.maxSpeedBps > 0 || data.maxSpeedPerHostBps > 0;
const client = createHttpClient({
  allowNetworks: data.allowNetworks,
  perHost: data.concurrentFragments,
  idleTimeoutMs: data.idleTimeoutMs,
  minSpeedBps: data.minSpeedBps,
  totalTimeoutMs: Number.POSITIVE_INFINITY,
  pauses,
  maxPauseMs: 1_000 * maxWaitS,
  // What has been read when the limit is reached counts as received only later.
  ...(isLimited && { readBytes: 16 * 1024 }),
  onBlocked: (reason) => send({ type: "blocked", reason }),
});
let running = new AbortController();
let finish = new AbortController();
yieldToService();
endWithParent();
// The service ends its workers itself, and not before they have stopped.
process.once("disconnect", () => process.exit());

process.on("message", (request: WorkerRequest) => {
  if (request.type === "abort") return running.abort();
  if (request.type === "finish") return finish.abort();
  if (request.type === "granted") return grants.onGranted(request);
  if (request.type === "pause") return void pauses.learn(request.pause);
  finish = new AbortController();
  running = new AbortController();
  void run(request.job, running.signal).then(send);
});

async function run(job: DownloadJob, signal: AbortSignal): Promise<WorkerMessage> {
  const throttle = createThrottle((progress) => send({ type: "progress", progress }));
  const alive = setInterval(() => send({ type: "alive" }), aliveMs);
  const context = {
    ...data,
    client: withCookies(client),
    signal,
    finish: finish.signal,
    ...(isLimited && { takeBytes: grants.take }),
    onProgress: throttle.push,
    onWork: (work: Extract<WorkerMessage, { type: "work" }>["work"]) => send({ type: "work", work }),
  };
  try {
    return { type: "done", download: await download(job, context) };
  } catch (error) {
    return { type: "failed", failure: serializeError(error) };
  } finally {
    clearInterval(alive);
    throttle.stop();
  }
}

/** Asks the service how much may be received. */
function createGrants() {
  const waiting = new Map<number, (bytes: number) => void>();
  let last = 0;
  return {
    async take(host: string, bytes: number, signal: AbortSignal): Promise<number> {
      const id = (last += 1);
      const { promise, resolve } = Promise.withResolvers<number>();
      waiting.set(id, resolve);
      send({ type: "take", id, host, bytes });
      try {
        return await untilAborted(promise, signal);
      } finally {
        waiting.delete(id);
      }
    },
    onGranted({ id, bytes }: { id: number; bytes: number }): void {
      waiting.get(id)?.(bytes);
    },
  };
}

/** Makes the system prefer the service when processor time or memory is short. */
function yieldToService(): void {
  yieldMemory();
  try {
    setPriority(niceness);
  } catch {
    // Not permitted.
  }
}

function send(message: WorkerMessage): void {
  // Fails if the service was killed; the process ends then.
  process.send?.(message, undefined, undefined, () => {});
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
    /** Emits what is pending: the caller may compare the bytes of several downloads. */
    stop(): void {
      clearTimeout(timer);
      flush();
      clearTimeout(timer);
    },
  };
}
