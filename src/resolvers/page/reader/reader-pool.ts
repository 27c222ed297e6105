import { availableParallelism } from "node:os";
import { untilAborted } from "../../../async/deadline.ts";
import { Shares } from "../../../async/shares.ts";
import { ServiceError } from "../../../model/errors.ts";
import { isMemorySmall } from "../../../system/memory.ts";
import { ProcessPool } from "../../../system/process-pool.ts";
import type { Reader } from "./reader.ts";
import { type ReaderLimits, ReaderProcess } from "./reader-process.ts";

interface ReaderOptions {
  /**
   * Processes, and one more while an owner has several and another has none, if there is 1 GiB of memory; default 2, or 1 on a machine with
   * one processor.
   */
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
  const size = processes ?? Math.min(2, availableParallelism());
  // Each process may take 200 MiB.
  const places = new Shares(size, isMemorySmall ? "firm" : "spare");
  const start = () => new ReaderProcess({ ...defaultLimits, ...limits });
  const pool = new ProcessPool({ start, idleMs, closedError });
  return {
    prepare() {
      if (pool.size < size) pool.prepare();
    },
    async read(job, body, { owner = "", signal }) {
      const reading = places.run(owner, signal, () => pool.use((process) => process.read(job, body)));
      // Reading cannot be interrupted: what is aborted keeps its process until its end.
      return untilAborted(reading, signal);
    },
    close: () => pool.close(),
  };
}

function closedError(): ServiceError {
  return new ServiceError("unavailable", "the reader of pages is closed");
}
