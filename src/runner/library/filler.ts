import { join } from "node:path";
import type { BaseLogger } from "pino";
import { mapConcurrent } from "../../async/map-concurrent.ts";
import { diskError, isMissing } from "../../files/disk-error.ts";
import type { FileStore } from "../../files/files.ts";
import { isServiceError, logFieldsOf, messageOf } from "../../model/errors.ts";
import { isActive, type LibraryFile, type Task } from "../../model/task.ts";
import { damagedAs } from "../../stores/rules.ts";
import type { TaskStore } from "../../stores/store.ts";
import { KnownNames, openFolder, type OpenFolder, openPath } from "./folders.ts";
import { isLibraryFailure, type LibraryJob, type LibraryJobs, ownerOf, type PlaceJob, withFailure } from "./jobs.ts";
import { openLibraryRoot } from "./library-root.ts";
import { removeUnchanged } from "./place-file.ts";
import { type PlacementOptions, placeTask } from "./place-task.ts";

export interface FillerOptions extends PlacementOptions {
  /** The library's folder. */
  folder: string;
  /** Where the jobs are kept; the same for all processes. */
  jobsFolder: string;
  jobs: LibraryJobs;
  store: TaskStore;
  files: FileStore;
  logger: Pick<BaseLogger, "info" | "warn" | "error">;
  /** Pause before what failed is tried again, milliseconds. */
  retryMs: number;
  /** How long a pass lasts once there are other jobs, milliseconds; default 20,000. */
  passMs?: number;
  signal: AbortSignal;
}

/** Does the jobs of a library: puts files into it, and removes them. */
export class Filler {
  readonly #options: FillerOptions;
  readonly #performAll: ReturnType<typeof createPasses>;
  /** What the jobs of this pass have read. */
  #known = new KnownNames();
  /** By the id of its task: the owner of each job of the latest pass. */
  #owners: ReadonlyMap<string, string> = new Map();
  /** By owner: the number of its latest turn, of all passes. */
  readonly #latest = new Map<string, number>();
  #turns = 0;
  /** Tasks whose job could not be read, or whose files could not be removed, which the log says once. */
  readonly #hindered = new Set<string>();

  constructor(options: FillerOptions) {
    this.#options = options;
    this.#performAll = createPasses({ ...options, perform: (id) => this.#perform(id) });
  }

  /**
   * Does all jobs once, of those that have failed before not all each time; returns false if another process is doing them. Owners take turns:
   * a disk may take hours for the thousands of files of one. Once `isOutdated` is aborted, as there are other jobs, it ends after a while.
   */
  async pass(isOutdated: AbortSignal): Promise<boolean> {
    const { jobs, passMs = 20_000 } = this.#options;
    const ids = await jobs.ids();
    if (ids.length === 0) return true;
    using lock = jobs.tryLock();
    if (lock === undefined) {
      // Another process may choose names, and end before it has put files there: all jobs are read again.
      this.#owners = new Map();
      return false;
    }
    try {
      const endMs = performance.now() + passMs;
      await this.#performAll(await this.#inTurns(ids), () => isOutdated.aborted && performance.now() >= endMs);
    } finally {
      this.#known = new KnownNames();
    }
    return true;
  }

  /** Returns the ids so that owners take turns, first the one whose latest turn is longest ago. */
  async #inTurns(ids: readonly string[]): Promise<string[]> {
    await this.#findOwners(ids);
    const counts = new Map<string, number>();
    const found = [...this.#owners].map(([id, owner]) => {
      const turn = counts.get(owner) ?? 0;
      counts.set(owner, turn + 1);
      return { id, turn, latest: this.#latest.get(owner) ?? 0 };
    });
    return found.toSorted((a, b) => a.turn - b.turn || a.latest - b.latest).map(({ id }) => id);
  }

  /** Reads only what has come since the pass before: thousands may wait for a disk that is away, and each task that succeeds begins a pass. */
  async #findOwners(ids: readonly string[]): Promise<void> {
    const unknown = ids.filter((id) => !this.#owners.has(id));
    const read = async (id: string) => {
      // What cannot be read fails when its turn comes.
      const job = await this.#options.jobs.read(id).catch(() => undefined);
      return [id, ownerOf(job)] as const;
    };
    const found = new Map(await Array.fromAsync(mapConcurrent(unknown, readsAtOnce, read)));
    this.#owners = new Map(ids.map((id) => [id, found.get(id) ?? this.#owners.get(id) ?? ""]));
  }

  /** Removes these files of a task, and its job; returns whether that is done. */
  async removeFiles(id: string, files: readonly LibraryFile[]): Promise<boolean> {
    const { jobs } = this.#options;
    try {
      await using root = await this.#openRoot();
      for (const file of files) await removeFile(root, file);
      await jobs.remove(id);
      this.#hindered.delete(id);
      return true;
    } catch (error) {
      const err = diskError("remove files from the library", error);
      return this.#warnOnce(id, err, "files could not be removed from the library; retrying every minute");
    }
  }

  #warnOnce(task: string, err: unknown, message: string): false {
    if (!this.#hindered.has(task)) this.#options.logger.warn({ task, ...logFieldsOf(err) }, message);
    this.#hindered.add(task);
    return false;
  }

  /** Does the job if it can be done now; returns false if that has failed. */
  async #perform(id: string): Promise<boolean> {
    const { jobs, store } = this.#options;
    let job: LibraryJob | undefined;
    try {
      job = await jobs.read(id);
    } catch (error) {
      const err = diskError("read what belongs in the library", error);
      return this.#warnOnce(id, err, "a job of the library cannot be read; retrying every minute");
    }
    if (job?.kind === "remove") return this.removeFiles(id, job.files);
    const task = await store.get(id).catch(damagedAs(undefined));
    if (job === undefined || isActive(task?.state)) return true;
    if (task === undefined ? await jobs.isOld(id) : task.state !== "succeeded" || task.file === null) {
      await jobs.remove(id);
    } else if (task !== undefined) return this.#placeFiles(task, job);
    return true;
  }

  /** Returns whether they are there. */
  async #placeFiles(task: Task, job: PlaceJob): Promise<boolean> {
    const { jobs, logger, signal } = this.#options;
    const { id, file } = task;
    this.#latest.set(ownerOf(job), (this.#turns += 1));
    try {
      await using root = await this.#openRoot();
      const saveChosen = async (files: LibraryFile[]) => jobs.write(id, { ...job, files });
      const library = await placeTask(task, {
        ...this.#options,
        root,
        known: this.#known,
        chosen: job.files,
        namesOfOthers: (folders) => jobs.namesOfOthers(id, folders),
        saveChosen,
      });
      await this.#saveOutcome(id, { library, ...(file !== null && { file: withFailure(file, undefined) }) });
      await jobs.remove(id, "place");
      if ((await jobs.read(id)) !== undefined) {
        await jobs.write(id, { kind: "remove", files: library });
        await this.removeFiles(id, library);
      }
      logger.info({ task: id, path: library[0]?.path }, "put into the library");
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      const failure = diskError("put the file into the library", error);
      const message = messageOf(failure);
      const known = file?.warnings?.find(isLibraryFailure);
      if (known?.message === message || file === null) return false;
      const isSaved = await this.#saveOutcome(id, { file: withFailure(file, message) });
      const about = "a file could not be put into the library; retrying every minute";
      if (isSaved) logger.warn({ task: id, ...logFieldsOf(failure) }, about);
      return !isSaved;
    }
  }

  /** Returns false if the task has been deleted, or its file removed, meanwhile. */
  async #saveOutcome(id: string, change: Pick<Partial<Task>, "library" | "file">): Promise<boolean> {
    try {
      await this.#options.store.update(id, change, { from: ["succeeded"], hasFile: true });
      return true;
    } catch (error) {
      if (!isServiceError(error, "conflict", "not_found")) throw error;
      return false;
    }
  }

  #openRoot() {
    return openLibraryRoot(this.#options.folder, this.#options.jobsFolder);
  }
}

/** Jobs that are read at a time. */
const readsAtOnce = 16;

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

interface PassOptions {
  /** Does a job if that can be done now; resolves with false if it has failed. */
  perform(id: string): Promise<boolean>;
  /** Pause before all that failed is tried again, milliseconds. */
  retryMs: number;
  signal: AbortSignal;
}

/**
 * Returns a function that tries jobs. Of those that have failed within `retryMs` it tries only one, which shows whether the others can be done: thousands
 * may wait for a disk.
 */
function createPasses({ perform, retryMs, signal }: PassOptions) {
  /** Those that failed when they were tried last. */
  const failed = new Set<string>();
  let retriedMs = -Infinity;

  /** Returns whether none has failed. */
  async function performAll(ids: readonly string[], mustEnd: () => boolean): Promise<boolean> {
    for (const id of ids) {
      if (signal.aborted || mustEnd()) return false;
      failed.delete(id);
      if (!(await perform(id))) failed.add(id);
    }
    return !ids.some((id) => failed.has(id));
  }

  return async (ids: readonly string[], mustEnd: () => boolean): Promise<void> => {
    const known = new Set(ids);
    for (const id of failed) if (!known.has(id)) failed.delete(id);
    // A timer may be early.
    if (performance.now() - retriedMs >= 0.9 * retryMs) {
      retriedMs = performance.now();
      await performAll(ids, mustEnd);
      return;
    }
    const [one, ...others] = failed;
    await performAll(
      ids.filter((id) => !failed.has(id)),
      mustEnd,
    );
    if (one !== undefined && (await performAll([one], () => false))) await performAll(others, mustEnd);
  };
}
