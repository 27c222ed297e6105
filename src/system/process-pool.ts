/** A process that works for one caller at a time. */
interface PooledProcess {
  /** Resolves once the process has ended. */
  readonly ended: Promise<void>;
  /** It has ended or is ending: it gets no more work. */
  readonly isEnding: boolean;
  /** Ends the process; resolves once it has ended. */
  end(): Promise<void>;
}

interface ProcessPoolOptions<P extends PooledProcess> {
  start: () => P;
  /** An idle process is ended after this time. */
  idleMs: number;
  /** How many processes there are now; default: nothing. */
  onSize?: ((size: number) => void) | undefined;
  /** What `use` rejects with once the pool is closed. */
  closedError: () => Error;
}

/** Processes that are kept for a while after their work, as a start takes longer. The caller bounds how many work at a time. */
export class ProcessPool<P extends PooledProcess> {
  readonly #options: ProcessPoolOptions<P>;
  readonly #all = new Set<P>();
  readonly #idle = new Map<P, NodeJS.Timeout>();
  #isClosed = false;

  constructor(options: ProcessPoolOptions<P>) {
    this.#options = options;
  }

  /** How many processes there are, those that end among them. */
  get size(): number {
    return this.#all.size;
  }

  /** Starts a process for the next caller, if none is idle. */
  prepare(): void {
    if (!this.#isClosed && this.#idle.size === 0) this.#idleFor(this.#start());
  }

  /**
   * Lets `work` have a process to itself until its promise settles.
   *
   * @throws what `work` rejects with; `closedError` if the pool is closed, before or meanwhile.
   */
  async use<T>(work: (process: P) => Promise<T>): Promise<T> {
    const { closedError } = this.#options;
    if (this.#isClosed) throw closedError();
    const process = this.#takeIdle() ?? this.#start();
    try {
      return await work(process);
    } catch (error) {
      throw this.#isClosed ? closedError() : error;
    } finally {
      if (!process.isEnding) this.#idleFor(process);
    }
  }

  /** Ends all processes; resolves once they have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#all].map((process) => this.#end(process)));
  }

  #takeIdle(): P | undefined {
    const process = this.#idle.keys().find(({ isEnding }) => !isEnding);
    if (process !== undefined) this.#stopIdling(process);
    return process;
  }

  #start(): P {
    const { start, onSize } = this.#options;
    const process = start();
    this.#all.add(process);
    onSize?.(this.#all.size);
    void this.#forgetOnceEnded(process);
    return process;
  }

  async #forgetOnceEnded(process: P): Promise<void> {
    await process.ended;
    this.#stopIdling(process);
    this.#all.delete(process);
    this.#options.onSize?.(this.#all.size);
  }

  #idleFor(process: P): void {
    const timer = setTimeout(() => void this.#end(process), this.#options.idleMs);
    this.#idle.set(process, timer);
  }

  #stopIdling(process: P): void {
    clearTimeout(this.#idle.get(process));
    this.#idle.delete(process);
  }

  #end(process: P): Promise<void> {
    this.#stopIdling(process);
    return process.end();
  }
}
