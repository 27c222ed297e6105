import type { FileHandle } from "node:fs/promises";
import type { MediaStream } from "./media-stream.ts";

/** How long a result is in use once it was marked, milliseconds. */
export const inUseMs = 60_000;

/** How long nothing was written in a work folder that is old, milliseconds: a week. */
export const oldMs = 7 * 86_400_000;

export interface OpenResult {
  handle: FileHandle;
  /** Where it is now, for a link to it or a copy that shares its blocks. */
  path: string;
  size: number;
  /**
   * Marks the result as in use for `inUseMs` from now, for all processes that have the file store open. Returns false if it was removed: it
   * takes its space until `handle` is closed.
   */
  markInUse(): Promise<boolean>;
}

/**
 * Contract of a file store: the results of tasks, and the work folders of their runs. It can be
 * implemented from this text alone.
 *
 * A task has at most one result: the medium, number 0, and other files from number 1 on. It appears complete or not at
 * all, and survives `SIGKILL` and power loss. If anything else is in the place of a file or folder, calls fail with `unavailable`. Symbolic links are never
 * followed; removing one leaves its target. Ids are task ids; any other text is an unknown id, never a path. Errors are
 * `ServiceError` with the original error as `cause`: `disk_full` if the disk is full (ENOSPC, EDQUOT, EFBIG), else `unavailable`.
 */
export interface FileStore {
  /**
   * Returns the path of the folder in which the task's runs keep what they fetched; creates it if missing.
   *
   * @throws ServiceError `not_found` for an unknown id.
   */
  openWorkFolder(id: string): Promise<string>;
  /** Removes the work folder with its content; no error if there is none. */
  removeWorkFolder(id: string): Promise<void>;
  /**
   * Removes the work folder if nothing was written in it for `oldMs`, by whichever process. Returns whether there is
   * none any more.
   */
  removeOldWorkFolder(id: string): Promise<boolean>;
  /**
   * Makes the file at `path`, the medium, and those at `others` the task's result, and removes the work folder. All are
   * complete, flushed and in the task's work folder.
   *
   * @throws ServiceError `not_found` for an unknown id.
   */
  saveResult(id: string, path: string, others?: readonly string[]): Promise<void>;
  /**
   * Opens a file of the result for reading, default: the medium; `undefined` if there is none. The caller closes the
   * handle. The file can be read to its end even if it is removed meanwhile.
   */
  open(id: string, number?: number): Promise<OpenResult | undefined>;
  /** Returns those of the ids that have a file of a result or a work folder. */
  withFiles(ids: readonly string[]): Promise<Set<string>>;
  /**
   * Opens the stream of the medium that a run of the task is making; the caller closes it. Undefined if there is none now, but the run
   * is asked for it, and may soon have one.
   */
  openStream(id: string): Promise<MediaStream | undefined>;
  /** Marks the stream as one whose run continues, for readers in any process; no error if there is none. */
  markStream(id: string): Promise<void>;
  /** Removes the result and the work folder; no error if there are none. */
  remove(id: string): Promise<void>;
  /** Whether a file of the result is in use, for whichever process. */
  isInUse(id: string): Promise<boolean>;
  /** Lists the ids that have a result or a work folder, in no particular order. */
  ids(): Promise<string[]>;
  /** Returns the free space, bytes. */
  freeBytes(): Promise<number>;
}
