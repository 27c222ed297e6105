import { existsSync, readFileSync } from "node:fs";

/** Returns the process ids of the children of a process; empty without /proc. */
export function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text.split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Returns the process ids of the downloads of a service. */
export function downloadsOf(pid: number): number[] {
  return childrenOf(pid).filter((child) => commandOf(child).includes("worker/start-worker.js"));
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** Whether a process runs; a zombie does not. */
export function isRunning(pid: number): boolean {
  const file = `/proc/${pid}/stat`;
  return existsSync(file) && !/\) [ZX] /.test(readFileSync(file, "utf8"));
}

/** Returns the processor time that a running process has used, milliseconds. */
export function processorMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
  // In ticks of 10 ms (proc_pid_stat(5): utime and stime).
  return 10 * (Number(fields[11]) + Number(fields[12]));
}
