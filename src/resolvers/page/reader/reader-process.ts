import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { ServiceError } from "../../../model/errors.ts";
import { processorMsOf, StartedProcess } from "../../../system/child-process.ts";
import type { ReadJob, ReadKind, ReadResults } from "./reader.ts";
import { MessageParts, packJob, tooComplexError, unpackOutcome } from "./wire.ts";

/** What reading one body may take. */
export interface ReaderLimits {
  /** Processor time, milliseconds; where the system does not report it, time. */
  readMs: number;
  /** JavaScript heap of a process, MiB. */
  heapMiB: number;
}

/** Longest time for a start: a machine may be busy. */
const startMs = 20_000;

/** A process that reads one body at a time, without this process's environment, which may contain secrets. */
export class ReaderProcess extends StartedProcess {
  readonly #limits: ReaderLimits;
  /** Resolves once the process has started or ended. */
  readonly #ready: Promise<void>;
  #isStartLate = false;

  /** Starts the process. */
  constructor(limits: ReaderLimits) {
    const program = fileURLToPath(new URL("./start-reader.js", import.meta.url));
    const flags = [...process.execArgv, `--max-old-space-size=${limits.heapMiB}`];
    super(spawn(process.execPath, [...flags, program, "read"], { env: {}, stdio: ["pipe", "pipe", "pipe"] }));
    const { promise: started, resolve: onStarted } = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      this.#isStartLate = true;
      void this.end();
    }, startMs);
    this.child.stdout?.once("data", onStarted);
    // Writing fails if the process has ended.
    this.child.stdin?.on("error", () => {});
    this.#ready = Promise.race([started, this.ended]).finally(() => clearTimeout(timer));
    this.#limits = limits;
  }

  /** It has ended or is ending: it cannot read another body. */
  get isEnding(): boolean {
    const { killed, exitCode, signalCode } = this.child;
    return killed || exitCode !== null || signalCode !== null || this.failure !== undefined;
  }

  /**
   * Reads a body.
   *
   * @throws ServiceError of the body; `upstream_invalid` if it exceeds a limit; `unavailable` if the process could not be
   * started or another program has ended it. In the last two cases it has ended.
   */
  async read<K extends ReadKind>(job: ReadJob<K>, body: readonly Uint8Array[]): Promise<ReadResults[K]> {
    await this.#ready;
    const { readMs } = this.#limits;
    const { stdout } = this.child;
    const { promise, resolve } = Promise.withResolvers<Buffer>();
    const parts = new MessageParts();
    const onData = (chunk: Buffer) => {
      const message = parts.add(chunk);
      if (message !== null) resolve(message);
    };
    let isLate = false;
    const clock = watchProcessorTime(this.child.pid, readMs, () => {
      isLate = true;
      void this.end();
    });
    stdout?.on("data", onData);
    this.#send(job, body);
    try {
      const outcome = await Promise.race([promise, this.ended]);
      if (outcome !== undefined) return unpackOutcome(job, outcome);
      throw isLate ? tooComplexError(job, `reading it takes more than ${readMs} ms, the limit`) : this.#deathError(job);
    } finally {
      clock.stop();
      stdout?.off("data", onData);
    }
  }

  #send(job: ReadJob, body: readonly Uint8Array[]): void {
    const { stdin } = this.child;
    const bodyBytes = body.reduce((sum, { length }) => sum + length, 0);
    stdin?.cork();
    stdin?.write(packJob(job, bodyBytes));
    for (const block of body) stdin?.write(block);
    stdin?.uncork();
  }

  #deathError(job: ReadJob): ServiceError {
    const { how, cause, isOutOfMemory } = this.death();
    if (isOutOfMemory) {
      return tooComplexError(job, `reading it takes more than ${this.#limits.heapMiB} MiB of memory, the limit`, cause);
    }
    const ended = this.#isStartLate ? `did not start within ${startMs} ms` : `ended with ${how}`;
    const what = this.child.pid === undefined ? `cannot be started: ${cause.message}` : ended;
    return new ServiceError("unavailable", `the process that reads pages ${what}`, { cause });
  }
}

/** A process that gets no processor time for so long has exceeded its own as well: this many times as long. */
const maxWaitFactor = 6;

/** Most pages take less, and are not watched: asking the system each time costs 5 % of what reading a page does. */
const unwatchedMs = 50;

/** Calls `onExceeded` once the process has used `limitMs` of processor time; all of the first 50 ms count. */
function watchProcessorTime(pid: number | undefined, limitMs: number, onExceeded: () => void) {
  const startedMs = performance.now();
  let usedBeforeMs = 0;
  let timer = setTimeout(watch, unwatchedMs);

  function watch(): void {
    usedBeforeMs = processorMsOf(pid) - unwatchedMs;
    timer = setTimeout(check, limitMs - unwatchedMs);
  }

  function check(): void {
    const isOver = performance.now() - startedMs >= maxWaitFactor * limitMs;
    const usedMs = processorMsOf(pid) - usedBeforeMs;
    if (isOver || !(usedMs < limitMs)) onExceeded();
    else timer = setTimeout(check, Math.max(limitMs - usedMs, 10));
  }

  return { stop: () => clearTimeout(timer) };
}
