import { availableParallelism } from "node:os";
import { untilAborted } from "../../../async/deadline.ts";
import { Shares } from "../../../async/shares.ts";
import { ServiceError } from "../../../model/errors.ts";
import { ProcessPool } from "../../../system/process-pool.ts";
import type { ReadContext, Reader, ReadJob, ReadKind, ReadResults } from "./reader.ts";
import { type ReaderLimits, ReaderProcess } from "./reader-process.ts";

interface ReaderOptions {
  /** Processes, and one more while an owner has several and another has none; default 2, or 1 on a machine with one processor. */
  processes?: number;
  limits?: Partial<ReaderLimits>;
}

/** The largest pages that can be read take some 0.5 s and 64 MiB. */
const defaultLimits: ReaderLimits = { readMs: 5_000, heapMiB: 128 };

/** An idle process is ended after this time. */
const idleMs = 60_000;

/**
 * Opens a reader that reads in processes of its own, so that a body that takes too much time or memory costs itself
 * alone. Bodies wait for a process: the next one is of the owner that has the fewest, each owner's in their order.
 */
export function openReader({ processes, limits }: ReaderOptions = {}): Reader {
  return new ReaderPool(processes ?? Math.min(2, availableParallelism()), { ...defaultLimits, ...limits });
}

class ReaderPool implements Reader {
  readonly #size: number;
  readonly #places: Shares;
  readonly #pool: ProcessPool<ReaderProcess>;

  constructor(size: number, limits: ReaderLimits) {
    this.#size = size;
    this.#places = new Shares(size, { isFirm: true, hasSpare: true });
    this.#pool = new ProcessPool({ start: () => new ReaderProcess(limits), idleMs, closedError });
  }

  prepare(): void {
    if (this.#pool.size < this.#size) this.#pool.prepare();
  }

  async read<K extends ReadKind>(
    job: ReadJob<K>,
    body: readonly Uint8Array[],
    { owner = "", signal }: ReadContext,
  ): Promise<ReadResults[K]> {
    const release = await this.#places.wait(owner, signal);
    const reading = this.#pool.use((process) => process.read(job, body)).finally(release);
    // Reading cannot be interrupted: what is aborted keeps its process until its end.
    return untilAborted(reading, signal);
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

function closedError(): ServiceError {
  return new ServiceError("unavailable", "the reader of pages is closed");
}
