import { basename } from "node:path";
import { diskError } from "../../../files/disk-error.ts";
import { syncFile } from "./disk-writes.ts";
import type { Journal } from "./journal.ts";
import type { StoredPart } from "./stored-part.ts";

/** Of all parts together. A shorter interval would slow down a fast transfer and the flush of its result. */
const bytesBetween = 16 * 1024 * 1024;
const intervalMs = 5_000;

/** Flushes written bytes to the disk periodically, concurrently with the transfer. */
export class Checkpoints {
  readonly #journal: Journal;
  #dirty = new Set<StoredPart>();
  #bytesSince = 0;
  #lastMs = performance.now();
  #isRunning = false;
  #isStopped = false;
  #failure: unknown;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** Counts bytes written to a part's file. */
  add(part: StoredPart, bytes: number): void {
    this.#dirty.add(part);
    this.#bytesSince += bytes;
    if (!this.#isRunning && !this.#isStopped && this.#isDue()) void this.#run();
  }

  /** @throws ServiceError `disk_full`, `unavailable`: the first error of a flush, if any */
  throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Starts no more flushes; the current one writes no more journal records. */
  stop(): void {
    this.#isStopped = true;
  }

  #isDue(): boolean {
    return this.#bytesSince >= bytesBetween && performance.now() - this.#lastMs >= intervalMs;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    const parts = this.#dirty;
    this.#dirty = new Set();
    this.#bytesSince = 0;
    try {
      for (const part of parts) if (!this.#isStopped) await this.#flush(part);
      if (!this.#isStopped) await this.#journal.sync();
    } catch (error) {
      this.#failure ??= error;
    }
    this.#isRunning = false;
    this.#lastMs = performance.now();
  }

  async #flush(part: StoredPart): Promise<void> {
    const { size, generation, path, name } = part;
    if (part.isRemoved) return;
    try {
      await syncFile(path);
    } catch (error) {
      if (part.isRemoved) return;
      // The system may have dropped the bytes that it could not write.
      if (!this.#isStopped) await this.#journal.add({ type: "lost", part: name });
      throw diskError(`flush ${basename(path)} in DATA_DIR`, error);
    }
    if (this.#isStopped || part.isRemoved || part.generation !== generation) return;
    part.synced = size;
    await this.#journal.add({ type: "synced", part: name, bytes: size });
  }
}
