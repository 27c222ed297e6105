import type { BaseLogger } from "pino";
import type { FileStore } from "../files/files.ts";
import type { TaskStore } from "../stores/store.ts";
import type { Task } from "../task.ts";
import type { KeyedMutex } from "../keyed-mutex.ts";

export interface FileCleanup {
  /** Removes the files of the task that nobody needs any more, once its run has ended. Never rejects. */
  cleanUp(id: string): Promise<void>;
  /**
   * The same for all that has files, until `signal` is aborted; but results of tasks that the store does
   * not know are left and reported, for they may be another store's. Never rejects.
   */
  cleanUpAll(signal: AbortSignal): Promise<void>;
}

/** Clears up behind tasks that somebody else has ended: a run that fails has done so itself. */
export function createFileCleanup(parts: {
  store: TaskStore;
  files: FileStore;
  mutex: KeyedMutex;
  logger: Pick<BaseLogger, "warn" | "error">;
}): FileCleanup {
  const { store, files, mutex, logger } = parts;

  async function cleanUp(id: string): Promise<void> {
    try {
      await mutex.runExclusive(id, async () => removeUnneededFiles(id, await store.get(id), files));
    } catch (err) {
      logger.error({ task: id, err }, "files of a task could not be removed");
    }
  }

  async function cleanUpAll(signal: AbortSignal): Promise<void> {
    let orphans = 0;
    try {
      for (const id of await files.ids()) {
        if (signal.aborted) return;
        const task = await store.get(id);
        // Before it had files it was in the store: one that is not there now has been deleted since.
        if (task === undefined) {
          await files.removeWorkFolder(id);
          if (await hasResult(id, files)) orphans += 1;
        } else if (!isUnfinished(task)) await cleanUp(id);
      }
      if (orphans > 0)
        logger.warn({ files: orphans }, "orphaned files: no such task in this store");
    } catch (err) {
      logger.error({ err }, "scanning for orphaned files failed");
    }
  }

  return { cleanUp, cleanUpAll };
}

/**
 * Removes what runs of the task have left behind, by what it is now:
 * - it is gone (`undefined`) or canceled: nothing is kept;
 * - it has failed: the parts are kept where a retry may go on from them;
 * - it has succeeded: the result is kept, no parts;
 * - it waits or runs: everything is kept.
 */
export async function removeUnneededFiles(
  id: string,
  task: Task | undefined,
  files: FileStore,
): Promise<void> {
  if (isUnfinished(task)) return;
  if (task?.state === "succeeded") await files.removeWorkFolder(id);
  else if (!mayGoOn(task) || (await hasResult(id, files))) await files.remove(id);
}

function isUnfinished(task: Task | undefined): boolean {
  return task?.state === "queued" || task?.state === "running";
}

function mayGoOn(task: Task | undefined): boolean {
  return task?.state === "failed" && task.error?.retryable === true;
}

/** One that has been kept, but which its task does not know of. */
async function hasResult(id: string, files: FileStore): Promise<boolean> {
  const result = await files.open(id);
  await result?.handle.close();
  return result !== undefined;
}
