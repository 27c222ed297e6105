import { ServiceError } from "../../../model/errors.ts";
import type { Engine, EngineDeps, EngineObserver } from "../../engine.ts";
import type { WorkerLimits } from "./worker-limits.ts";
import { startWorkerProcess, type WorkerProcess } from "./worker-process.ts";

/** Worker processes, each with one download at a time. */
export type WorkerPool = Omit<Engine, "name">;

/** An idle process is ended after this time. */
const idleMs = 10_000;

export function createWorkerPool(
  data: EngineDeps,
  limits: WorkerLimits,
  observer?: EngineObserver,
): WorkerPool {
  const all = new Set<WorkerProcess>();
  const usage = new Map<number, number>();
  const idle = new Map<WorkerProcess, NodeJS.Timeout>();
  let isClosed = false;

  function acquire(): WorkerProcess {
    const worker = idle.keys().find(({ isEnding }) => !isEnding);
    if (worker === undefined) return start();
    stopIdling(worker);
    return worker;
  }

  function start(): WorkerProcess {
    const worker = startWorkerProcess({ data, limits, usage, observer });
    all.add(worker);
    observer?.onProcesses(all.size);
    void forgetOnceEnded(worker);
    return worker;
  }

  async function forgetOnceEnded(worker: WorkerProcess): Promise<void> {
    await worker.ended;
    stopIdling(worker);
    all.delete(worker);
    observer?.onProcesses(all.size);
  }

  function stopIdling(worker: WorkerProcess): void {
    clearTimeout(idle.get(worker));
    idle.delete(worker);
  }

  /** A process that is ending gets no more work. */
  function end(worker: WorkerProcess): Promise<void> {
    stopIdling(worker);
    return worker.end();
  }

  function release(worker: WorkerProcess): void {
    if (!worker.isEnding)
      idle.set(
        worker,
        setTimeout(() => void end(worker), idleMs),
      );
  }

  return {
    async download(job, context) {
      const { signal } = context;
      signal.throwIfAborted();
      if (isClosed) throw closedError();
      const worker = acquire();
      try {
        return await worker.download(job, context);
      } catch (error) {
        signal.throwIfAborted();
        throw isClosed ? closedError() : error;
      } finally {
        release(worker);
      }
    },

    async close() {
      isClosed = true;
      await Promise.all([...all].map(end));
    },
  };
}

function closedError(): ServiceError {
  return new ServiceError("unavailable", "the download engine is closed");
}
