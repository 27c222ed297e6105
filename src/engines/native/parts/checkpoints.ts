import { diskError } from "../../../files/disk-error.ts";
import type { StoredPart } from "./stored-part.ts";
import type { Journal } from "./journal.ts";
import { syncFile } from "./sync-file.ts";

/** Flushes what is written to the disk, from time to time and beside the transfer. */
export interface Checkpoints {
  /** So many bytes more are in the part's file. */
  note(part: StoredPart, bytes: number): void;
  /**
   * The first thing that went wrong while flushing.
   *
   * @throws ServiceError `disk_full`, `unavailable`
   */
  throwFailure(): void;
  /** Begins no more, and leaves out what the one under way has not yet written to the journal. */
  stop(): void;
}

/** Of all parts together. A shorter pause would slow down a fast transfer. */
const bytesBetween = 16 * 1024 * 1024;
const pauseMs = 2_000;

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
      // The system may have dropped what it could not write.
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
    return bytesSince >= bytesBetween && performance.now() - lastMs >= pauseMs;
  }

  return {
    note(part, bytes) {
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
