import type { BaseLogger } from "pino";
import { sleep } from "../async/deadline.ts";
import { isServiceError } from "../model/errors.ts";
import type { FileStore } from "../files/files.ts";
import { createKeyedMutex } from "../async/keyed-mutex.ts";
import { logOutages } from "../async/outages.ts";
import { createFileRemover } from "./file-cleanup.ts";
import { DamagedTaskError, StorageFullError } from "../stores/rules.ts";
import type { TaskStore, UpdateOptions } from "../stores/store.ts";
import type { StoredFile } from "../stores/store-types.ts";
import type { Task } from "../model/task.ts";

export type StorageLimit = ReturnType<typeof createStorageLimit>;

type StoreTask = (limit: Pick<UpdateOptions, "maxStoredBytes">) => Promise<void>;

/** Files that are looked at, and removed, at a time. */
const batchSize = 50;

const pauseMs = 10_000;

/** Other tasks may take the space that was made for this one. */
const maxAttempts = 100;

interface StorageLimitOptions {
  store: TaskStore;
  files: FileStore;
  maxBytes: number;
  logger: Pick<BaseLogger, "error" | "info" | "warn">;
}

/**
 * Creates the limit for the files of all tasks together; `maxBytes` 0: there is none. The files that finished first are
 * removed first. Leaves files that are in use, which then exceed the limit until
 * they are not, and those of damaged records. Several processes may remove files at the same time.
 */
export function createStorageLimit(options: StorageLimitOptions) {
  const maxBytes = options.maxBytes === 0 ? Infinity : options.maxBytes;
  const mutex = createKeyedMutex();
  const attempt = logOutages(options.logger, {
    failed: "files over MAX_STORED_BYTES cannot be removed",
    restored: "files over MAX_STORED_BYTES can be removed again",
  });
  const removeOldest = createOldestRemover({ ...options, maxBytes });

  /** Returns whether there is space for `bytes` more; undefined if that is unknown. */
  function makeSpace(bytes: number, signal?: AbortSignal): Promise<boolean | undefined> {
    return mutex.runExclusive("files", () => attempt(() => removeOldest(bytes, signal)));
  }

  /** Returns false if there cannot be space. */
  async function saveWithin(bytes: number, storeTask: StoreTask): Promise<boolean> {
    for (let n = 0; n < maxAttempts; n += 1) {
      try {
        await storeTask({ maxStoredBytes: maxBytes });
        return true;
      } catch (error) {
        if (!(error instanceof StorageFullError)) throw error;
      }
      if ((await makeSpace(bytes)) === false) break;
    }
    return false;
  }

  return {
    /** Bytes; Infinity: any number. */
    maxBytes,
    /**
     * Calls `storeTask`, which passes the limit on to the store's `update`, and removes files until the task, whose
     * file has `bytes` bytes, fits. If what is left cannot be removed, it calls it without a limit.
     *
     * @throws what `storeTask` throws
     */
    async save(bytes: number, storeTask: StoreTask): Promise<void> {
      if (maxBytes < Infinity && (await saveWithin(bytes, storeTask))) return;
      await storeTask({});
    },
    /** Removes files over the limit, at once and every 10 s, until `signal` is aborted. Never rejects. */
    async hold(signal: AbortSignal): Promise<void> {
      if (maxBytes === Infinity) return;
      while (!signal.aborted) {
        await makeSpace(0, signal);
        await sleep(pauseMs, signal);
      }
    },
  };
}

/** Returns a function that removes the oldest files until there is space for `bytes` more; false if there cannot be. */
function createOldestRemover({ store, files, maxBytes, logger }: StorageLimitOptions) {
  const old = createOldFileRemover({ store, files, logger });
  let isExceeded = false;

  function noteExcess(excess: number): void {
    const message = "MAX_STORED_BYTES is exceeded: the files that are left are in use or cannot be removed";
    if (excess > 0 && !isExceeded) logger.warn({ bytes: excess, maxBytes }, message);
    isExceeded = excess > 0;
  }

  return async (bytes: number, signal?: AbortSignal): Promise<boolean> => {
    const removed: StoredFile[] = [];
    try {
      await old.removeLeft();
      for (let after: StoredFile | undefined; ;) {
        const stored = await store.storedFiles({ limit: batchSize, after });
        const excess = stored.bytes + bytes - maxBytes;
        const first = takeBytes(stored.oldest, excess);
        after = first.at(-1);
        if (signal?.aborted === true) return false;
        if (after === undefined) {
          noteExcess(excess);
          return excess <= 0;
        }
        await settleAll(
          first.map(async (file) => {
            if (await old.remove(file)) removed.push(file);
          }),
        );
      }
    } finally {
      const line = { files: removed.length, bytes: removed.reduce((sum, file) => sum + file.bytes, 0), maxBytes };
      const message = "removed the oldest files to stay within MAX_STORED_BYTES";
      if (removed.length > 0) logger.info(line, message);
    }
  };
}

/** Creates what removes the files of tasks, and tries again where the record says so already, but the file is still there. */
function createOldFileRemover({ store, ...deps }: Omit<StorageLimitOptions, "maxBytes">) {
  const removeUnused = createFileRemover({ store, ...deps }, "an old file could not be removed");
  const left = new Set<string>();

  async function removeFile(id: string): Promise<boolean> {
    const task = await store.get(id);
    if (task?.state !== "succeeded" || task.file === null) return false;
    const { isMarked, isRemoved } = await removeUnused(id);
    if (isMarked && !isRemoved) left.add(id);
    // The store's disk was too full to say so before.
    if (isRemoved && !isMarked) await store.update(id, { file: null }, { from: ["succeeded"], hasFile: true });
    return isRemoved;
  }

  return {
    /** Returns whether it has removed the file. */
    async remove({ id }: StoredFile): Promise<boolean> {
      try {
        return await removeFile(id);
      } catch (error) {
        // If it is not damaged, another process has removed it meanwhile.
        if (error instanceof DamagedTaskError || isServiceError(error, "conflict", "not_found")) return false;
        throw error;
      }
    },
    async removeLeft(): Promise<void> {
      for (const id of left) if ((await removeUnused(id)).isRemoved) left.delete(id);
    },
  };
}

/** Returns as few of the first files as have `bytes` bytes together, or all. */
function takeBytes(files: readonly StoredFile[], bytes: number): StoredFile[] {
  let taken = 0;
  return files.filter(({ bytes: more }) => {
    const isNeeded = taken < bytes;
    taken += more;
    return isNeeded;
  });
}

/** Waits for all. @throws the error of the first that failed */
async function settleAll(jobs: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(jobs);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
}

interface Kept {
  /** Of all its tasks. */
  bytes: number;
  byTask: Map<string, number>;
}

/**
 * Counts the bytes of downloads that failed and may be resumed, by owner: they stay on the disk for as long as their tasks wait, and are no
 * files yet. A process knows those of its own runs.
 */
export class PartialDownloads {
  readonly #kept = new Map<string, Kept>();

  /**
   * Returns whether the partial download of a task may stay: with those of the owner's other tasks it has no more bytes than the files of the owner
   * still may have.
   *
   * @param bytes `null`: as many as before.
   * @param bytesLeft Undefined: any number.
   */
  keep({ id, owner }: Pick<Task, "id" | "owner">, bytes: number | null, bytesLeft: number | undefined): boolean {
    if (owner === undefined || bytesLeft === undefined) return true;
    const before = this.#kept.get(owner)?.byTask.get(id) ?? 0;
    this.forget({ id, owner });
    const { bytes: others, byTask } = this.#kept.get(owner) ?? { bytes: 0, byTask: new Map<string, number>() };
    const own = bytes ?? before;
    if (others + own > bytesLeft) return false;
    if (own > 0) this.#kept.set(owner, { bytes: others + own, byTask: byTask.set(id, own) });
    return true;
  }

  /** Call it when nothing is left of the download. */
  forget({ id, owner }: { id: string; owner?: string | null | undefined }): void {
    const kept = this.#kept.get(owner ?? "");
    const bytes = kept?.byTask.get(id);
    if (owner === null || owner === undefined || kept === undefined || bytes === undefined) return;
    kept.byTask.delete(id);
    if (kept.byTask.size === 0) this.#kept.delete(owner);
    else kept.bytes -= bytes;
  }
}
