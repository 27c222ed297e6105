import { readFileSync } from "node:fs";
import { ServiceError } from "../../../model/errors.ts";
import { processorMsOf } from "../../../system/child-process.ts";
import type { FileWork } from "../output/assemble-streams.ts";

export interface WorkerLimits {
  /** JavaScript heap, MiB; V8 ends a process that needs more. */
  heapMiB: number;
  /** Resident memory, buffers included, MiB; this and the next two are checked on Linux only. */
  residentMiB: number;
  /** Resident memory of all workers together, MiB: above it the largest one is ended … */
  totalMiB: number;
  /** … if it has more than this, MiB; ordinary downloads have less. */
  shareMiB: number;
  /** A process that has more resident memory than this after a download with subtitles, MiB, gets no other one. */
  keptMiB: number;
  /** Longest time that the event loop may be blocked. */
  silenceMs: number;
  /** Longest time for work on complete files, and more by their size. */
  workMs: number;
}

const intervalMs = 100;

/** A worker that gets hardly any processor time has this many times the limits of time. */
const starvedFactor = 3;

const works: Readonly<Record<FileWork["kind"], { name: string; bytesPerMs: number }>> = {
  read: { name: "reading the file", bytesPerMs: 20_000 },
  merge: { name: "merging the tracks", bytesPerMs: 5_000 },
};

/**
 * Watches a worker process from outside, as one that is stuck cannot watch itself. Calls `onExceeded` with
 * the error of the first limit that it exceeds: `internal` for memory, `upstream_invalid` for time, as only
 * hostile media take that long; neither is retryable. Time counts while this process runs: a machine that was
 * suspended exceeds nothing. A worker that has got hardly any processor time is not kept busy by its media: only three times
 * as long exceeds the limit, which is `unavailable`, and retryable. `usage` has the resident memory of each worker that is watched, MiB, by process id.
 */
export function watchLimits(
  pid: number,
  limits: WorkerLimits,
  usage: Map<number, number>,
  onExceeded: (error: ServiceError) => void,
) {
  let lastMs = performance.now();
  let silentMs = 0;
  /** Processor time before it was silent, and before it began its work. */
  let [usedBeforeMs, usedBeforeWorkMs] = [Number.NaN, Number.NaN];
  let work: FileWork | null = null;
  let workedMs = 0;

  function check(): ServiceError | undefined {
    const nowMs = performance.now();
    const passedMs = Math.min(nowMs - lastMs, 5 * intervalMs);
    lastMs = nowMs;
    const usedMs = processorMsOf(pid);
    if (silentMs === 0) usedBeforeMs = usedMs;
    if (workedMs === 0) usedBeforeWorkMs = usedMs;
    silentMs += passedMs;
    workedMs += passedMs;
    const memory = checkMemory(pid, limits, usage);
    if (memory !== undefined) return memory;
    const silence = { what: "a single step", limitMs: limits.silenceMs, tookMs: silentMs, bounds: "" };
    const silenceError = checkTime(silence, usedMs - usedBeforeMs);
    if (work === null || silenceError !== undefined) return silenceError;
    const { name: what, bytesPerMs } = works[work.kind];
    const limitMs = limits.workMs + Math.ceil(work.bytes / bytesPerMs);
    const bounds = ` for ${work.bytes} bytes`;
    return checkTime({ what, limitMs, tookMs: workedMs, bounds }, usedMs - usedBeforeWorkMs);
  }

  const timer = setInterval(() => {
    const error = check();
    if (error === undefined) return;
    clearInterval(timer);
    onExceeded(error);
  }, intervalMs);
  return {
    /** The worker has sent a message. */
    onMessage(): void {
      silentMs = 0;
    },
    /** It begins work on complete files, or has ended it (`null`). */
    onWork(next: FileWork | null): void {
      work = next;
      workedMs = 0;
    },
    stop(): void {
      clearInterval(timer);
      usage.delete(pid);
    },
  };
}

function checkMemory(
  pid: number,
  { residentMiB, totalMiB, shareMiB }: WorkerLimits,
  usage: Map<number, number>,
): ServiceError | undefined {
  const ownMiB = residentMiBOf(pid);
  usage.set(pid, ownMiB);
  if (ownMiB > residentMiB) return memoryError(`more than its limit of ${residentMiB} MiB of memory`);
  const all = [...usage.values()];
  const sumMiB = all.reduce((sum, each) => sum + each, 0);
  if (sumMiB <= totalMiB || ownMiB <= shareMiB || ownMiB < Math.max(...all)) return undefined;
  return memoryError(
    `${ownMiB} MiB of memory, the most of all downloads, which had ${sumMiB} MiB; their limit is ${totalMiB} MiB`,
  );
}

/** Also for a process that V8 has ended. */
export function memoryError(what: string, cause?: Error): ServiceError {
  const message = `the download crashed: it needed ${what}`;
  return new ServiceError("internal", message, { retryable: false, cause });
}

/** @param usedMs Processor time that the process has had meanwhile; NaN: unknown. */
function checkTime(
  { what, limitMs, tookMs, bounds }: Record<"limitMs" | "tookMs", number> & Record<"what" | "bounds", string>,
  usedMs: number,
): ServiceError | undefined {
  if (tookMs <= limitMs) return undefined;
  if (!(usedMs < tookMs / 10)) {
    const limitS = Math.round(limitMs / 1000);
    const message = `the media cannot be processed: ${what} took over ${limitS} s, the limit${bounds}`;
    return new ServiceError("upstream_invalid", message, { retryable: false });
  }
  if (tookMs <= starvedFactor * limitMs) return undefined;
  const seconds = Math.round((starvedFactor * limitMs) / 1000);
  const message = `the process of the download got hardly any processor time or disk for ${seconds} s`;
  return new ServiceError("unavailable", message);
}

/** Returns the process's resident memory; 0 if it has ended or the system is not Linux. */
export function residentMiBOf(pid: number): number {
  try {
    // Not `statm`: it counts pages, whose size depends on the system.
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Math.round(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024);
  } catch {
    return 0;
  }
}
