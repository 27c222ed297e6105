import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { breakStream } from "../../../files/stream-run.ts";
import { deserializeError, ServiceError } from "../../../model/errors.ts";
import { StartedProcess } from "../../../system/child-process.ts";
import type { Download, DownloadContext, DownloadJob, EngineDeps, EngineObserver } from "../../engine.ts";
import type { WorkerMessage, WorkerRequest } from "./messages.ts";
import { memoryError, residentMiBOf, watchLimits, type WorkerLimits } from "./worker-limits.ts";
import type { HostPauses } from "../../../net/host-pauses.ts";
import type { SpeedLimit } from "../../../net/speed-limit.ts";

const abortGraceMs = 700;

interface WorkerProcessOptions extends Shared {
  data: EngineDeps;
  limits: WorkerLimits;
  /** Resident memory of each worker, MiB, by process id. */
  usage: Map<number, number>;
  observer: EngineObserver | undefined;
}

/** A process that runs one download at a time, without this process's environment, which may contain secrets. */
export class WorkerProcess extends StartedProcess {
  readonly #options: WorkerProcessOptions;

  constructor(options: WorkerProcessOptions) {
    const { data, limits } = options;
    const program = fileURLToPath(new URL("./start-worker.js", import.meta.url));
    const child = fork(program, [JSON.stringify(data)], {
      // As in src/start.js: more threads for file I/O.
      env: { ...data.environment, UV_THREADPOOL_SIZE: "16" },
      execArgv: [...process.execArgv, `--max-old-space-size=${limits.heapMiB}`],
      serialization: "advanced",
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    super(child);
    this.#options = options;
  }

  /** It has ended or is ending: it cannot run another download. */
  get isEnding(): boolean {
    return this.child.killed || !this.child.connected;
  }

  /**
   * Runs a download. If it is aborted, the process has 700 ms to stop.
   *
   * @throws ServiceError of the download; `internal` if the process crashed; `upstream_invalid` if it exceeded
   * a time limit; `unavailable` if it could not be started or another program has ended it. The process
   * has ended, or has stopped the download.
   */
  async download(job: DownloadJob, context: DownloadContext): Promise<Download> {
    const { signal, finish } = context;
    const { limits, usage, observer } = this.#options;
    const { child } = this;
    const { promise, resolve } = Promise.withResolvers<WorkerResult>();
    let exceeded: ServiceError | undefined;
    let grace: NodeJS.Timeout | undefined;
    this.errorOutput = "";
    // A process that could not be started has no id.
    const watch = watchLimits(child.pid ?? 0, limits, usage, (error) => {
      exceeded = error;
      void this.end();
    });
    const restraints = startRestraints(child, this.#options, context);
    const onMessage = (message: WorkerMessage) => {
      watch.onMessage();
      restraints.onMessage(message);
      if (message.type === "work") watch.onWork(message.work);
      else if (message.type === "blocked") observer?.onBlocked(message.reason);
      else if (message.type === "done" || message.type === "failed") resolve(message);
    };
    const onAbort = () => {
      send(child, { type: "abort" });
      grace = setTimeout(() => void this.end(), abortGraceMs);
    };
    const onFinish = () => send(child, { type: "finish" });
    child.on("message", onMessage);
    signal.addEventListener("abort", onAbort, { once: true });
    send(child, { type: "download", job });
    finish?.addEventListener("abort", onFinish, { once: true });
    if (finish?.aborted === true) onFinish();
    try {
      const result = await Promise.race([promise, this.ended]);
      if (result?.type === "done") return result.download;
      if (result?.type === "failed") throw deserializeError(result.failure, "the download");
      if (!signal.aborted) observer?.onDeath(exceeded === undefined ? "crash" : "limit");
      // If that fails, its readers wait for the next run.
      await breakStream(job.folder).catch(() => {});
      throw exceeded ?? this.#crashError();
    } finally {
      watch.stop();
      restraints.stop();
      clearTimeout(grace);
      signal.removeEventListener("abort", onAbort);
      finish?.removeEventListener("abort", onFinish);
      child.off("message", onMessage);
      // V8 keeps what long subtitles have needed; the buffers of media are used again.
      if (job.subtitles.length > 0 && residentMiBOf(child.pid ?? 0) > limits.keptMiB) void this.end();
    }
  }

  #crashError(): ServiceError {
    const { pid, signalCode } = this.child;
    const { how, cause, isOutOfMemory } = this.death();
    if (pid === undefined) {
      const message = `no process for the download can be started: ${cause.message}`;
      return new ServiceError("unavailable", message, { cause });
    }
    if (isOutOfMemory)
      return memoryError(`more than its limit of ${this.#options.limits.heapMiB} MiB of memory`, cause);
    const [, reason] = /fatal[^:\n]*: *([^\n]{1,200})/i.exec(this.errorOutput) ?? [];
    const message = `the download crashed: its process ended with ${how}${reason === undefined ? "" : `: ${reason}`}`;
    const isShort = signalCode === "SIGKILL" ? ", which the system sends if memory is short" : "";
    return signalsOfOthers.has(signalCode)
      ? new ServiceError("unavailable", message + isShort, { cause })
      : new ServiceError("internal", message, { cause, retryable: false });
  }
}

type WorkerResult = Extract<WorkerMessage, { type: "done" | "failed" }>;

function send(child: ChildProcess, request: WorkerRequest): void {
  // Else it has ended, or could not be started; `ended` then resolves.
  if (child.connected) child.send(request, () => {});
}

/** Signals by which others end a process: a terminal, a service manager, or the system if memory is short, whichever process has it. */
const signalsOfOthers: ReadonlySet<string | null> = new Set(["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"]);

/** What the downloads of a process share. */
interface Shared {
  speed: SpeedLimit;
  pauses: HostPauses;
}

/** Starts to hold the download of a worker to what all share: sends it what it may receive, and which hosts are left alone. */
function startRestraints(
  child: ChildProcess,
  { speed, pauses }: Shared,
  { onProgress, onWaiting }: Pick<DownloadContext, "onProgress" | "onWaiting">,
) {
  const share = speed.open();
  const unsubscribe = pauses.subscribe((pause) => send(child, { type: "pause", pause }));
  for (const pause of pauses.list()) send(child, { type: "pause", pause });

  async function grant({ id, host, bytes }: Extract<WorkerMessage, { type: "take" }>): Promise<void> {
    // A process that was taken over may send anything.
    if (!Number.isSafeInteger(bytes) || bytes < 1) return;
    send(child, { type: "granted", id, bytes: await share.take(host, bytes) });
  }

  return {
    /** Answers a message; ignores those that are about something else. */
    onMessage(message: WorkerMessage): void {
      if (message.type === "take") void grant(message);
      else if (message.type === "pause" && message.pause.seconds > 0) pauses.add(message.pause);
      else if (message.type === "waiting") onWaiting?.(message.isWaiting);
      else if (message.type === "progress") {
        onProgress({ ...message.progress, ...(share.hasWaited() && { waiting_for: "speed" }) });
      }
    },
    /** The download has ended. */
    stop(): void {
      share.close();
      unsubscribe();
    },
  };
}
