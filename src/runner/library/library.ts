import { logOutages } from "../../async/outages.ts";
import { Shares } from "../../async/shares.ts";
import { withDiskError } from "../../files/disk-error.ts";
import { messageOf } from "../../model/errors.ts";
import type { LibraryFile, Task } from "../../model/task.ts";
import { damagedAs } from "../../stores/rules.ts";
import type { TaskStore } from "../../stores/store.ts";
import { Filler, type FillerOptions } from "./filler.ts";
import { openFolder } from "./folders.ts";
import { createLibraryJobs, findPendingMembers, isPending, type LibraryJobs } from "./jobs.ts";
import { readMemory } from "./library-root.ts";
import { assertLinkable } from "./place-file.ts";
import { sleep, untilAborted } from "../../async/deadline.ts";

/** The folder in which the files of tasks are put under names for people. */
export interface Library {
  /** Notes that the files of a task belong there once it has succeeded. Must be called before it has. */
  expect(id: string, owner?: string): Promise<void>;
  /** Whether the files of a task that has succeeded are still to be put there, which has not failed until now. Never rejects. */
  isPending(task: Task): Promise<boolean>;
  /** Yields the members of a collection, by index, that `isPending`. */
  pendingMembers(collection: Task): AsyncIterable<Task>;
  /**
   * Removes the files of a task there that are as they were put, also those that are being put there; if that cannot be done now, or the
   * disk hangs, a process that fills the library does it later.
   */
  remove(task: Task): Promise<void>;
  /** Fills the library from now on, if this process does: at once, and again every minute what could not be done. */
  start(): void;
  /** Resolves once nothing is written any more; safe to call twice. */
  stop(): Promise<void>;
}

export interface LibraryOptions extends Omit<FillerOptions, "jobs" | "retryMs" | "signal"> {
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
 * @throws Error if this process is to fill it, and there is no such folder that was used before, or it is to be used for the first
 * time and cannot have hard links to the files of DATA_DIR that it is to have
 */
export async function openLibrary(options: LibraryOptions): Promise<Library> {
  const { store, logger, folder, jobsFolder, retryMs = 60_000 } = options;
  const jobs = createLibraryJobs(jobsFolder);
  if (options.isFiller && (await readMemory(folder, jobsFolder)) === undefined) await assertUsable(options);
  const stopping = new AbortController();
  const { signal } = stopping;
  const turns = new Shares(1, "firm");
  const filler = new Filler({ ...options, jobs, signal, retryMs });
  const removeNow = createRemovals({ removeFiles: (id, files) => filler.removeFiles(id, files) });
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
      const isIdle = await attempt(() => filler.pass(wakeUp.signal));
      await sleep(isIdle === false ? busyMs : retryMs, AbortSignal.any([signal, wakeUp.signal]));
    }
  }

  return {
    async expect(id, owner) {
      await withDiskError(`note that the file of task ${id} belongs in the library`, async () => {
        if ((await jobs.read(id)) === undefined) await jobs.write(id, { kind: "place", owner });
      });
    },
    isPending: (task) => isPending(task, jobs),
    pendingMembers: (collection) => findPendingMembers(collection, { jobs, store, turns, signal }),
    async remove(task) {
      const removal = await planRemoval(task, jobs, store);
      // What fills the library may be putting them there, and removes them afterwards.
      if (removal?.isPlacing === true) wakeUp.abort();
      else if (removal !== undefined && options.isFiller) await removeNow(task, removal.files);
    },
    start() {
      if (!options.isFiller || filled !== undefined) return;
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

async function assertUsable({ folder, jobsFolder, isLink }: LibraryOptions): Promise<void> {
  try {
    await using _ = await openFolder(folder, folder, true);
  } catch (cause) {
    const reason = messageOf(cause);
    throw new Error(`LIBRARY_DIR must be a folder that exists, got ${folder}: ${reason}`, { cause });
  }
  if (isLink) await assertLinkable(jobsFolder, folder);
}

interface RemovalsOptions {
  /** Removes these files of a task; never rejects. */
  removeFiles(id: string, files: readonly LibraryFile[]): Promise<unknown>;
  /** How long a request waits, milliseconds; default five seconds. */
  timeoutMs?: number;
}

/** Calls of a disk that does not respond take threads of the process, all of whose files need them. */
const removalsAtOnce = 4;

/**
 * Returns a function that removes files while a request waits. A few are removed at a time; owners take turns. The request does not wait for a
 * disk that hangs: what is not done within `timeoutMs` ends whenever the disk lets it, and until then no other removal is begun.
 */
export function createRemovals({ removeFiles, timeoutMs = 5_000 }: RemovalsOptions) {
  const places = new Shares(removalsAtOnce, "firm");
  /** Removals for which no request waits. */
  let hanging = 0;

  return async ({ id, owner = "" }: Pick<Task, "id" | "owner">, files: readonly LibraryFile[]): Promise<void> => {
    if (hanging > 0) return;
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      const release = await places.wait(owner, timeout);
      if (hanging > 0) return release();
      const removed = removeFiles(id, files).finally(release);
      await untilAborted(removed, timeout).catch((error: unknown) => {
        hanging += 1;
        void removed.finally(() => (hanging -= 1));
        throw error;
      });
    } catch (error) {
      if (!timeout.aborted) throw error;
    }
  };
}
