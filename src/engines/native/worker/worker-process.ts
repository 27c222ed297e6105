import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { breakStream } from "../../../files/stream-run.ts";
import { deserializeError, ServiceError } from "../../../model/errors.ts";
import type { Download, DownloadContext, DownloadJob, EngineDeps, EngineObserver } from "../../engine.ts";
import type { WorkerRequest, WorkerMessage } from "./messages.ts";
import { type Shared, startRestraints } from "./restraints.ts";
import { memoryError, residentMiBOf, watchLimits, type WorkerLimits } from "./worker-limits.ts";

const abortGraceMs = 700;

/** As much of the worker's error output as is kept: V8's reason is at its start. */
const maxErrorLength = 4_000;

interface WorkerProcessOptions extends Shared {
  data: EngineDeps;
  limits: WorkerLimits;
  /** Resident memory of each worker, MiB, by process id. */
  usage: Map<number, number>;
  observer: EngineObserver | undefined;
}

/** A process that runs one download at a time, without this process's environment, which may contain secrets. */
export class WorkerProcess {
  /** Resolves once the process has ended. */
  readonly ended: Promise<void>;
  readonly #options: WorkerProcessOptions;
  readonly #child: ChildProcess;
  #errorOutput = "";
  #failure: Error | undefined;

  /** Starts the process. */
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
    const { promise: ended, resolve: onEnded } = Promise.withResolvers<void>();
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errorOutput = (this.#errorOutput + text).slice(0, maxErrorLength);
    });
    child.on("error", (error) => {
      this.#failure = error;
      if (child.pid === undefined) onEnded();
    });
    child.once("close", () => onEnded());
    this.ended = ended;
    this.#options = options;
    this.#child = child;
  }

  /** It has ended or is ending: it cannot run another download. */
  get isEnding(): boolean {
    return this.#child.killed || !this.#child.connected;
  }

  /** Kills the process; resolves once it has ended. */
  end(): Promise<void> {
    this.#child.kill("SIGKILL");
    return this.ended;
  }

  /**
   * Runs a download. If it is aborted, the process has 700 ms to stop.
   *
   * @throws ServiceError of the download; `internal` if the process crashed; `upstream_invalid` if it exceeded
   * a time limit; `unavailable` if it could not be started or somebody else has ended it. The process
   * has ended, or has stopped the download.
   */
  async download(job: DownloadJob, context: DownloadContext): Promise<Download> {
    const { signal, finish } = context;
    const { limits, usage, observer } = this.#options;
    const child = this.#child;
    const { promise, resolve } = Promise.withResolvers<WorkerResult>();
    let exceeded: ServiceError | undefined;
    let grace: NodeJS.Timeout | undefined;
    this.#errorOutput = "";
    // A process that could not be started has no id.
    const watch = watchLimits(child.pid ?? 0, limits, usage, (error) => {
      exceeded = error;
      void this.end();
    });
    const restraints = startRestraints(this.#options, context, (request) => send(child, request));
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
      throw exceeded ?? crashError(child, this.#failure, this.#errorOutput, limits);
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
}

type WorkerResult = Extract<WorkerMessage, { type: "done" | "failed" }>;

function send(child: ChildProcess, request: WorkerRequest): void {
  // Else it has ended, or could not be started; `ended` then resolves.
  if (child.connected) child.send(request, () => {});
}

/** Signals by which others end a process: a terminal, a service manager, or the system if memory is short, whoever has it. */
const signalsOfOthers: ReadonlySet<string | null> = new Set(["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"]);

function crashError(
  { pid, signalCode, exitCode }: ChildProcess,
  failure: Error | undefined,
  errorOutput: string,
  { heapMiB }: WorkerLimits,
): ServiceError {
  const cause = failure ?? new Error(errorOutput || "it wrote no reason");
  if (pid === undefined) {
    const message = `no process for the download can be started: ${cause.message}`;
    return new ServiceError("unavailable", message, { cause });
  }
  if (errorOutput.includes("heap out of memory")) {
    return memoryError(`more than its limit of ${heapMiB} MiB of memory`, cause);
  }
  const how = signalCode === null ? `exit code ${exitCode}` : `signal ${signalCode}`;
  const [, reason] = /fatal[^:\n]*: *([^\n]{1,200})/i.exec(errorOutput) ?? [];
  const message = `the download crashed: its process ended with ${how}${reason === undefined ? "" : `: ${reason}`}`;
  const isShort = signalCode === "SIGKILL" ? ", which the system sends if memory is short" : "";
  return signalsOfOthers.has(signalCode)
    ? new ServiceError("unavailable", message + isShort, { cause })
    : new ServiceError("internal", message, { cause, retryable: false });
}
