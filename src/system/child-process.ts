import type { ChildProcess } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { Worker } from "node:worker_threads";

/** As much of the error output as is kept: V8's reason is at its start. */
const maxErrorLength = 4_000;

/** A process that was started, or could not be: then `child` has no id. */
export class StartedProcess {
  /** Resolves once the process has ended. */
  readonly ended: Promise<void>;
  protected readonly child: ChildProcess;
  protected errorOutput = "";
  protected failure: Error | undefined;

  constructor(child: ChildProcess) {
    const { promise, resolve } = Promise.withResolvers<void>();
    // Without free file descriptors there are no streams.
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.errorOutput = (this.errorOutput + text).slice(0, maxErrorLength);
    });
    child.on("error", (error) => {
      this.failure = error;
      if (child.pid === undefined) resolve();
    });
    child.once("close", () => resolve());
    this.ended = promise;
    this.child = child;
  }

  /** Kills the process; resolves once it has ended. */
  end(): Promise<void> {
    this.child.kill("SIGKILL");
    return this.ended;
  }

  /** Returns how the process has ended, and why, as far as that is known. */
  protected death(): { how: string; cause: Error; isOutOfMemory: boolean } {
    const { signalCode, exitCode } = this.child;
    return {
      how: signalCode === null ? `exit code ${exitCode}` : `signal ${signalCode}`,
      cause: this.failure ?? new Error(this.errorOutput || "it wrote no reason"),
      isOutOfMemory: this.errorOutput.includes("heap out of memory"),
    };
  }
}

/** Returns the processor time that a process has used, milliseconds; NaN if the system does not report it. */
export function processorMsOf(pid: number | undefined): number {
  try {
    const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
    const [utime, stime] = fields.split(" ").slice(11, 13);
    // In ticks of 10 ms (proc_pid_stat(5)).
    return 10 * (Number(utime) + Number(stime));
  } catch {
    return Number.NaN;
  }
}

/**
 * Makes this process end when its parent is killed, even if it is busy then. Signals that a terminal or a service manager
 * may send to all processes of the service do not end it: the service does.
 */
export function endWithParent(): void {
  new Worker(new URL("./watch-parent.js", import.meta.url), {
    workerData: { parentPid: process.ppid },
    execArgv: [],
  }).unref();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
}

/** Makes the system end this process before its parent if memory is short, however much of it the parent has. */
export function yieldMemory(): void {
  try {
    // proc(5): as if it had all memory.
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch {
    // Not Linux, or not permitted.
  }
}
