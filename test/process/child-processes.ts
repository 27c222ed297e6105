import { existsSync, readFileSync } from "node:fs";

/** Returns the process ids of the children of a process, of those that run `program`; empty without /proc. */
export function childrenOf(pid: number, program = ""): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    const all = text.split(" ").filter(Boolean).map(Number);
    return all.filter((child) => commandOf(child).includes(program));
  } catch {
    return [];
  }
}

/** Returns the process ids of the downloads of a service. */
export function downloadsOf(pid: number): number[] {
  return childrenOf(pid, "worker/start-worker.js");
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
  // utime and stime (proc_pid_stat(5)).
  return ticksMs(pid, 11, 13);
}

/** Returns the same with that of its children that have ended. */
export function processorMsOfTree(pid: number): number {
  // cutime and cstime, too.
  return ticksMs(pid, 11, 15);
}

function ticksMs(pid: number, from: number, to: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
  // A tick is 10 ms.
  return fields.slice(from, to).reduce((sum, ticks) => sum + 10 * Number(ticks), 0);
}
