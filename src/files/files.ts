import type { FileHandle } from "node:fs/promises";

/**
 * Contract of a file store: the results of tasks, and the folders in which runs work. It can be
 * implemented from this text alone.
 *
 * A task has at most one result, which appears whole or not at all and survives `SIGKILL` and power
 * loss. Ids are task ids; any other text is an unknown id, never a path. Errors are `ServiceError`:
 * `disk_full` where there is no room (ENOSPC, EDQUOT), else `unavailable` with the original error as
 * `cause`.
 */
export interface FileStore {
  /** The folder in which the task's runs keep what they fetched; made where it is missing. */
  openWorkFolder(id: string): Promise<string>;
  /** Removes that folder with all that is in it; no error where there is none. */
  removeWorkFolder(id: string): Promise<void>;
  /** Makes the file at `path`, which is complete, on the disk and in the parts folder, the task's result, and removes the parts. */
  saveResult(id: string, path: string): Promise<void>;
  /** The result for reading, or `undefined`; the caller closes the handle. It can be read to its end even if it is removed. */
  open(id: string): Promise<{ handle: FileHandle; size: number } | undefined>;
  /** Removes result and parts; no error where there are none. */
  remove(id: string): Promise<void>;
  /** The ids that have a result or parts, in no order. */
  ids(): Promise<string[]>;
  /** Bytes that may still be written. */
  freeBytes(): Promise<number>;
}
