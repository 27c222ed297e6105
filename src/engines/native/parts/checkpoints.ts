import { diskError } from "../../../files/disk-error.ts";
import type { StoredPart } from "./stored-part.ts";
import type { Journal } from "./journal.ts";
import { syncFile } from "./sync-file.ts";

/** Flushes written bytes to the disk periodically, concurrently with the transfer. */
export interface Checkpoints {
  /** Counts bytes written to a part's file. */
  add(part: StoredPart, bytes: number): void;
  /** @throws ServiceError `disk_full`, `unavailable`: the first error of a flush, if any */
  throwFailure(): void;
  /** Starts no more flushes; the current one writes no more journal records. */
  stop(): void;
}

/** Of all parts together. A shorter interval would slow down a fast transfer and the flush of its result. */
const bytesBetween = 16 * 1024 * 1024;
const intervalMs = 5_000;

export function createCheckpoints(journal: Journal): Checkpoints {
  let dirty = new Set<StoredPart>();
  let bytesSince = 0;
  let lastMs = performance.now();
  let isRunning = false;
  let isStopped = false;
  let failure: unknown;

  async function flush(part: StoredPart): Promise<void> {
    const { size, generation, path } = part;
    try {
      await syncFile(path);
    } catch (error) {
      // The system may have dropped the bytes that it could not write.
      if (!isStopped) await journal.add({ type: "lost", part: part.name });
      throw diskError(`flush ${path}`, error);
    }
    if (isStopped || part.generation !== generation) return;
    part.synced = size;
    await journal.add({ type: "synced", part: part.name, bytes: size });
  }

  async function run(): Promise<void> {
    isRunning = true;
    const parts = dirty;
    dirty = new Set();
    bytesSince = 0;
    try {
      for (const part of parts) if (!isStopped) await flush(part);
      if (!isStopped) await journal.sync();
    } catch (error) {
      failure ??= error;
    }
    isRunning = false;
    lastMs = performance.now();
  }

  function isDue(): boolean {
    return bytesSince >= bytesBetween && performance.now() - lastMs >= intervalMs;
  }

  return {
    add(part, bytes) {
      dirty.add(part);
      bytesSince += bytes;
      if (!isRunning && !isStopped && isDue()) void run();
    },

    throwFailure() {
      if (failure !== undefined) throw failure;
    },

    stop() {
      isStopped = true;
    },
  };
}
