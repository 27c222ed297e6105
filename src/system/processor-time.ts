import { readFileSync } from "node:fs";

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
