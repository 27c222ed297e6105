import { writeFileSync } from "node:fs";
import { Worker } from "node:worker_threads";

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

/** Makes the system end this process before its parent if memory is short. */
export function yieldMemory(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", "500");
  } catch {
    // Not Linux, or not permitted.
  }
}
