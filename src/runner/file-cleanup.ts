import { setImmediate } from "node:timers/promises";
import type { BaseLogger } from "pino";
import { sleep } from "../async/deadline.ts";
import { logOutages } from "../async/outages.ts";
import type { FileStore } from "../files/files.ts";
import { isServiceError, logFieldsOf } from "../model/errors.ts";
import { DamagedTaskError, damagedAs, StoreDiskFullError } from "../stores/rules.ts";
import type { TaskStore } from "../stores/store.ts";
import { isActive, type Task } from "../model/task.ts";
import type { KeyedMutex } from "../async/keyed-mutex.ts";

export type FileCleanup = ReturnType<typeof createFileCleanup>;

interface CleanupDeps {
  store: TaskStore;
  files: FileStore;
  mutex: KeyedMutex;
  logger: Pick<BaseLogger, "info" | "warn" | "error">;
  /** Pause before what failed is tried again, milliseconds; default a minute. */
  retryMs?: number | undefined;
}

/** Removes files of canceled or deleted tasks; a failed run removes its own. */
export function createFileCleanup(deps: CleanupDeps) {
  const { store, files, mutex, logger, retryMs = 60_000 } = deps;
  const hasFiles = createLookup(files, mutex);
  /** Tasks whose files could not be removed. */
  const left = new Set<string>();
  const attempt = logOutages(logger, {
    failed: "looking for files that are not needed failed; retrying every minute",
    restored: "looking for files that are not needed works again",
  });

  /** Removes the unneeded files of a task once its run has ended; if that fails, `run` tries again. Never rejects. */
  async function cleanUp(id: string, owner: string | null = null): Promise<void> {
    try {
      await mutex.runExclusive(id, async () => {
        if (!(await hasFiles(id))) return;
        // Of each owner one after the other: thousands of tasks may end with their collection, and a later run of the task waits for this.
        await mutex.runExclusive(`cleanup ${owner ?? ""}`, async () =>
          removeUnneededFiles(id, await store.get(id), files),
        );
      });
      left.delete(id);
    } catch (err) {
      const message = "files of a task could not be removed; retrying every minute";
      if (!left.has(id)) logger.error({ task: id, ...logFieldsOf(err) }, message);
      left.add(id);
    }
  }

  return {
    cleanUp,
    /** Does `cleanUpAll` once, and again every minute what failed, until `signal` is aborted. Never rejects. */
    async run(signal: AbortSignal): Promise<void> {
      let isDone: boolean | undefined;
      while (!signal.aborted) {
        isDone ??= await attempt(async () => {
          await cleanUpAll(deps, cleanUp, signal);
          return true;
        });
        for (const id of left) if (!signal.aborted) await cleanUp(id);
        await sleep(retryMs, signal);
      }
    },
  };
}

/**
 * Removes the unneeded files of every task by `cleanUp`. Leaves all files of tasks whose records are damaged. A task that the store does
 * not know may belong to another store, and may be running: its result stays, and its work folder too unless nothing was written in it
 * for a week (a crash may leave one after the record was deleted). Logs how many such tasks have files.
 *
 * @throws the error of the first that cannot be looked at, once the others have been
 */
async function cleanUpAll(
  { store, files, logger }: Omit<CleanupDeps, "mutex" | "retryMs">,
  cleanUp: (id: string) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let orphans = 0;

  async function look(id: string): Promise<void> {
    const task = await store.get(id).catch(damagedAs(null));
    if (task === null) return;
    if (task === undefined) {
      // A task is stored before it has files: this one was deleted since, or belongs to another store.
      const hasFolder = !(await files.removeOldWorkFolder(id));
      if (hasFolder || (await hasResult(id, files))) orphans += 1;
    } else if (!isActive(task.state)) await cleanUp(id);
  }

  // What cannot be looked at, as a link in the place of a file, leaves the others their turn.
  let failure: { error: unknown } | undefined;
  for (const id of await files.ids()) {
    if (signal.aborted) return;
    await look(id).catch((error: unknown) => (failure ??= { error }));
  }
  if (failure !== undefined) throw failure.error;
  if (orphans > 0) logger.warn({ files: orphans }, "orphaned files: no such task in this store");
}

/** Creates a function that says whether a task has files; most have none. One look answers all calls that came during the look before it. */
function createLookup(files: FileStore, mutex: KeyedMutex) {
  let asked: { ids: string[]; found: Promise<Set<string>> } | undefined;

  async function look(ids: readonly string[]): Promise<Set<string>> {
    await setImmediate();
    asked = undefined;
    return files.withFiles(ids);
  }

  return async (id: string): Promise<boolean> => {
    if (asked === undefined) {
      const ids: string[] = [];
      asked = { ids, found: mutex.runExclusive("lookup", () => look(ids)) };
    }
    asked.ids.push(id);
    return (await asked.found).has(id);
  };
}

/**
 * Removes the files of a task that its present state does not need:
 * - deleted (undefined) or canceled: keeps nothing;
 * - failed: keeps the work folder if a retry may resume from it;
 * - succeeded: keeps the result, unless the record says that it was removed;
 * - queued or running: keeps everything.
 */
export async function removeUnneededFiles(id: string, task: Task | undefined, files: FileStore): Promise<void> {
  if (isActive(task?.state)) return;
  if (task?.state === "succeeded" && task.file !== null) await files.removeWorkFolder(id);
  else if (!isResumable(task) || (await hasResult(id, files))) await files.remove(id);
}

function isResumable(task: Task | undefined): boolean {
  return task?.state === "failed" && task.error?.retryable === true;
}

/** Whether there is a saved result, which the task need not name. */
async function hasResult(id: string, files: FileStore): Promise<boolean> {
  const result = await files.open(id);
  await result?.handle.close();
  return result !== undefined;
}

/**
 * Says in the record of a task that its file was removed, before it is: if the service is killed in between, the next start removes the file.
 * Returns undefined if there is nothing to say, or if the store's disk is too full: it may need the space that the file takes.
 *
 * @throws ServiceError `unavailable` if the store cannot be written otherwise
 */
export async function markRemoved(
  store: TaskStore,
  id: string,
  change: { library?: [] } = {},
): Promise<Task | undefined> {
  try {
    return await store.update(id, { ...change, file: null }, { from: ["succeeded"], hasFile: true });
  } catch (error) {
    const isUnwritable = error instanceof DamagedTaskError || error instanceof StoreDiskFullError;
    if (isUnwritable || isServiceError(error, "conflict", "not_found")) return undefined;
    throw error;
  }
}

/**
 * Creates a function that removes the files of a task that has ended, after its record says so, unless one is in use. Returns whether it has
 * said so there, and whether there are none any more. What hinders it at the disk is logged once for each task; another call may succeed.
 *
 * @throws ServiceError `unavailable` if the store cannot be written: then nothing is removed
 */
export function createFileRemover(
  { store, files, logger }: { store: TaskStore; files: FileStore; logger: Pick<BaseLogger, "error"> },
  failed: string,
): (id: string) => Promise<{ isMarked: boolean; isRemoved: boolean }> {
  const failing = new Set<string>();

  /** Returns undefined if it fails. */
  async function attempt<T>(id: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (err) {
      if (!failing.has(id)) logger.error({ task: id, ...logFieldsOf(err) }, failed);
      failing.add(id);
      return undefined;
    }
  }

  return async (id) => {
    if ((await attempt(id, () => files.isInUse(id))) !== false) return { isMarked: false, isRemoved: false };
    const isMarked = (await markRemoved(store, id)) !== undefined;
    const isRemoved = await attempt(id, async () => {
      await files.remove(id);
      return true;
    });
    if (isRemoved === true) failing.delete(id);
    return { isMarked, isRemoved: isRemoved === true };
  };
}
