import { readdirSync, readFileSync } from "node:fs";
import type { ServiceProcess } from "./service.ts";

/** Returns how many descriptors a process has open (Linux). */
export function descriptors({ process: { pid } }: ServiceProcess): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** Returns how much memory a process has resident, bytes (Linux). */
export function residentBytes({ process: { pid } }: ServiceProcess): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) * 1024;
}
