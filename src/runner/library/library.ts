import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { BaseLogger } from "pino";
import { logOutages } from "../../async/outages.ts";
import { diskError, isMissing } from "../../files/disk-error.ts";
import type { FileStore } from "../../files/files.ts";
import { isServiceError, messageOf } from "../../model/errors.ts";
import { isActive, type LibraryFile, type Task } from "../../model/task.ts";
import { damagedAs } from "../../stores/rules.ts";
import type { TaskStore } from "../../stores/store.ts";
import { openFolder, type OpenFolder, openPath } from "./folders.ts";
import {
  createLibraryJobs,
  findPendingMembers,
  isLibraryFailure,
  isPending,
  type LibraryJob,
  type LibraryJobs,
} from "./jobs.ts";
import { openLibraryRoot, readMemory } from "./library-root.ts";
import { createPasses } from "./passes.ts";
import { removeUnchanged } from "./place-file.ts";
import { type PlacementOptions, placeTask } from "./place-task.ts";

/** The folder in which the files of tasks are put under names for people. */
export interface Library {
  /** Notes that the files of a task belong there once it has succeeded. Must be called before it has. */
  expect(id: string): Promise<void>;
  /** Whether the files of a task that has succeeded are still to be put there, which has not failed until now. Never rejects. */
  isPending(task: Task): Promise<boolean>;
  /** Yields members of a collection, by index, of which that is so. */
  pendingMembers(id: string): AsyncIterable<Task>;
  /**
   * Removes the files of a task there that are as they were put, also those that are being put there; if that cannot be done now, a
   * process that fills the library does it later.
   */
  remove(task: Task): Promise<void>;
  /** Fills the library from now on: at once, and again every minute what could not be done. */
  start(): void;
  /** Resolves once nothing is written any more; safe to call twice. */
  stop(): Promise<void>;
}

export interface LibraryOptions extends PlacementOptions {
  /** The library's folder. */
  folder: string;
  /** Where the jobs are kept; the same for all processes. */
  jobsFolder: string;
  store: TaskStore;
  files: FileStore;
  logger: Pick<BaseLogger, "info" | "warn" | "error">;
  /** Whether this process fills the library. */
  isFiller: boolean;
  /** Pause before what failed is tried again, milliseconds; default a minute. */
  retryMs?: number;
}

/** Pause before it is tried again whether another process still fills the library. */
const busyMs = 1_000;

/**
 * Opens the library.
 *
 * @throws Error if this process is to fill it, and there is no such folder that was used before
 */
export async function openLibrary(options: LibraryOptions): Promise<Library> {
  const { store, logger, folder, jobsFolder, retryMs = 60_000 } = options;
  const jobs = createLibraryJobs(jobsFolder);
  if (options.isFiller && (await readMemory(folder, jobsFolder)) === undefined) await assertFolder(folder);
  const stopping = new AbortController();
  const { signal } = stopping;
  const filler = createFiller({ ...options, jobs, signal, retryMs });
  const attempt = logOutages(logger, {
    failed: "the library cannot be filled",
    restored: "the library is filled again",
  });
  let wakeUp = new AbortController();
  let filled: Promise<void> | undefined;
  let unsubscribe = () => {};

  async function fill(): Promise<void> {
    while (!signal.aborted) {
      wakeUp = new AbortController();
      const isIdle = await attempt(filler.pass);
      const pause = AbortSignal.any([signal, wakeUp.signal]);
      await sleep(isIdle === false ? busyMs : retryMs, undefined, { signal: pause }).catch(() => undefined);
    }
  }

  return {
    async expect(id) {
      try {
        if ((await jobs.read(id)) === undefined) await jobs.write(id, { kind: "place" });
      } catch (error) {
        throw diskError(`note that the file of task ${id} belongs in the library`, error);
      }
    },
    isPending: (task) => isPending(task, jobs),
    pendingMembers: (id) => findPendingMembers(id, jobs, store),
    async remove(task) {
      const removal = await planRemoval(task, jobs, store);
      // What fills the library may be putting them there, and removes them afterwards.
      if (removal?.isPlacing === true) wakeUp.abort();
      else if (removal !== undefined && options.isFiller) await filler.removeFiles(task.id, removal);
    },
    start() {
      if (filled !== undefined) return;
      unsubscribe = store.events.subscribe(({ type, state }) => {
        if (type === "deleted" || state === "succeeded") wakeUp.abort();
      });
      filled = fill();
    },
    async stop() {
      stopping.abort();
      unsubscribe();
      await filled;
    },
  };
}

/** Notes which files of a task are to be removed, and returns them; undefined: it has none, and gets none. */
async function planRemoval(task: Task, jobs: LibraryJobs, store: Pick<TaskStore, "get">) {
  const { id } = task;
  const findPlaced = async () => task.library ?? (await store.get(id).catch(damagedAs(undefined)))?.library ?? [];
  const [planned, placed] = [await jobs.read(id), await findPlaced()];
  if (planned === undefined && placed.length === 0) return undefined;
  const known = [...placed, ...(planned?.files ?? [])];
  await jobs.write(id, { kind: "remove", files: known });
  // Read again, as what fills the library looks for this job only after it has put them there, and has said so.
  const files = [...(await findPlaced()), ...((await jobs.read(id))?.files ?? [])];
  const isKnown = files.every(({ path }) => known.some((file) => file.path === path));
  if (!isKnown) await jobs.write(id, { kind: "remove", files });
  return { files, isPlacing: planned?.kind === "place" && placed.length === 0 };
}

async function assertFolder(folder: string): Promise<void> {
  try {
    await using _ = await openFolder(folder, folder, true);
  } catch (cause) {
    const reason = messageOf(cause);
    throw new Error(`LIBRARY_DIR must be a folder that exists, got ${folder}: ${reason}`, { cause });
  }
}

type FillerOptions = LibraryOptions & { jobs: LibraryJobs; signal: AbortSignal; retryMs: number };

/** Creates a runner of the jobs. */
function createFiller(options: FillerOptions) {
  const { store, jobs, logger, folder, jobsFolder, signal, retryMs } = options;

  /** Returns whether they are there. */
  async function placeFiles(task: Task, job: LibraryJob & { kind: "place" }): Promise<boolean> {
    const { id, file } = task;
    try {
      await using root = await openLibraryRoot(folder, jobsFolder);
      const saveChosen = async (files: LibraryFile[]) => jobs.write(id, { kind: "place", files });
      const library = await placeTask(task, { ...options, root, chosen: job.files, saveChosen });
      await saveOutcome(id, { library, ...(file !== null && { file: withWarning(file, undefined) }) });
      await jobs.remove(id, "place");
      if ((await jobs.read(id)) !== undefined) {
        await jobs.write(id, { kind: "remove", files: library });
        await removeFiles(id, { files: library });
      }
      logger.info({ task: id, path: library[0]?.path }, "put into the library");
      return true;
    } catch (error) {
      signal.throwIfAborted();
      const failure = diskError("put the file into the library", error);
      const message = messageOf(failure);
      const known = file?.warnings?.find(isLibraryFailure);
      if (known?.message === message || file === null) return false;
      logger.warn({ task: id, err: error }, "a file could not be put into the library; retrying every minute");
      await saveOutcome(id, { file: withWarning(file, message) });
      return false;
    }
  }

  /** The task may have been deleted, or its file removed, meanwhile. */
  async function saveOutcome(id: string, change: Pick<Partial<Task>, "library" | "file">): Promise<void> {
    try {
      await store.update(id, change, { from: ["succeeded"], hasFile: true });
    } catch (error) {
      if (!isServiceError(error, "conflict", "not_found")) throw error;
    }
  }

  /** Returns whether they are removed. */
  async function removeFiles(id: string, { files }: { files: readonly LibraryFile[] }): Promise<boolean> {
    try {
      await using root = await openLibraryRoot(folder, jobsFolder);
      for (const file of files) await removeFile(root, file);
      await jobs.remove(id);
      return true;
    } catch (err) {
      logger.warn({ task: id, err }, "files could not be removed from the library; retrying every minute");
      return false;
    }
  }

  /** Does the job if it can be done now; returns false if that has failed. */
  async function perform(id: string): Promise<boolean> {
    const job = await jobs.read(id);
    if (job?.kind === "remove") return removeFiles(id, job);
    const task = await store.get(id).catch(damagedAs(undefined));
    if (job === undefined || isActive(task?.state)) return true;
    if (task === undefined ? await jobs.isOld(id) : task.state !== "succeeded" || task.file === null) {
      await jobs.remove(id);
    } else if (task !== undefined) return placeFiles(task, job);
    return true;
  }

  const performAll = createPasses({ perform, retryMs, signal });
  return {
    removeFiles,
    /** Does all jobs once, of those that have failed before not all each time; returns false if another process is doing them. */
    async pass(): Promise<boolean> {
      const ids = await jobs.ids();
      if (ids.length === 0) return true;
      using lock = jobs.tryLock();
      if (lock !== undefined) await performAll(ids);
      return lock !== undefined;
    },
  };
}

function withWarning(file: NonNullable<Task["file"]>, message: string | undefined): NonNullable<Task["file"]> {
  const others = (file.warnings ?? []).filter((warning) => !isLibraryFailure(warning));
  return { ...file, warnings: message === undefined ? others : [...others, { code: "library_failed", message }] };
}

/** Removes a file that is as it was put there; a folder that is gone, or changed, is left alone. */
async function removeFile(root: OpenFolder, { path, size, modified_at }: LibraryFile): Promise<void> {
  const names = path.split("/");
  const name = names.pop() ?? "";
  try {
    await using folder = await openPath(root, names, (parent, next) => openFolder(join(parent.path, next), next));
    await removeUnchanged(folder, name, { size, modifiedMs: Date.parse(modified_at) });
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}
