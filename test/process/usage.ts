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

/** Returns the letter of a process' state, as `S` of one that sleeps, `T` of a stopped one (Linux). */
export function stateOf({ process: { pid } }: ServiceProcess): string | undefined {
  return /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
}
