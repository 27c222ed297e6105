import { availableParallelism } from "node:os";
import { untilAborted } from "../../../async/deadline.ts";
import { Shares } from "../../../async/shares.ts";
import { ServiceError } from "../../../model/errors.ts";
import type { ReadContext, Reader, ReadJob, ReadKind, ReadResults } from "./reader.ts";
import { type ReaderLimits, ReaderProcess } from "./reader-process.ts";

export interface ReaderOptions {
  /** Processes at most; default 2, or 1 on a machine with one processor. */
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
  readonly #limits: ReaderLimits;
  readonly #places: Shares;
  readonly #all = new Set<ReaderProcess>();
  readonly #idle = new Map<ReaderProcess, NodeJS.Timeout>();
  #isClosed = false;

  constructor(size: number, limits: ReaderLimits) {
    this.#size = size;
    this.#limits = limits;
    this.#places = new Shares(size, { isFirm: true });
  }

  prepare(): void {
    if (this.#isClosed || this.#idle.size > 0 || this.#all.size >= this.#size) return;
    this.#idleFor(this.#start());
  }

  async read<K extends ReadKind>(
    job: ReadJob<K>,
    body: readonly Uint8Array[],
    { owner = "", signal }: ReadContext,
  ): Promise<ReadResults[K]> {
    const release = await this.#places.wait(owner, signal);
    // Reading cannot be interrupted: what is aborted keeps its process until its end.
    return untilAborted(this.#read(job, body).finally(release), signal);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#all].map((process) => this.#end(process)));
  }

  async #read<K extends ReadKind>(job: ReadJob<K>, body: readonly Uint8Array[]): Promise<ReadResults[K]> {
    if (this.#isClosed) throw closedError();
    const process = this.#takeIdle() ?? this.#start();
    try {
      return await process.read(job, body);
    } catch (error) {
      throw this.#isClosed ? closedError() : error;
    } finally {
      if (!process.isEnding) this.#idleFor(process);
    }
  }

  #takeIdle(): ReaderProcess | undefined {
    const process = this.#idle.keys().find(({ isEnding }) => !isEnding);
    if (process !== undefined) this.#stopIdling(process);
    return process;
  }

  #start(): ReaderProcess {
    const process = new ReaderProcess(this.#limits);
    this.#all.add(process);
    void this.#forgetOnceEnded(process);
    return process;
  }

  async #forgetOnceEnded(process: ReaderProcess): Promise<void> {
    await process.ended;
    this.#stopIdling(process);
    this.#all.delete(process);
  }

  #idleFor(process: ReaderProcess): void {
    const timer = setTimeout(() => void this.#end(process), idleMs);
    this.#idle.set(process, timer);
  }

  #stopIdling(process: ReaderProcess): void {
    clearTimeout(this.#idle.get(process));
    this.#idle.delete(process);
  }

  #end(process: ReaderProcess): Promise<void> {
    this.#stopIdling(process);
    return process.end();
  }
}

function closedError(): ServiceError {
  return new ServiceError("unavailable", "the reader of pages is closed");
}
