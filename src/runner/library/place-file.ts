import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, type FileHandle, link, lstat, open, rename, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createDurably } from "../../files/disk.ts";
import { isUnsupported, unlessMissing } from "../../files/disk-error.ts";
import type { OpenResult } from "../../files/files.ts";
import { noFollow } from "../../files/no-follow.ts";
import { ServiceError, systemErrorCode } from "../../model/errors.ts";
import { type OpenFolder, setMode } from "./folders.ts";

/** What a file is recognised by as the one that was put there: nothing has been written to it since. */
export interface FileMark {
  /** Bytes. */
  size: number;
  /** Modification time, milliseconds since 1970. */
  modifiedMs: number;
}

export interface PlaceOptions {
  /** Name of the file until it is complete; whatever has it is removed. */
  draft: string;
  modifiedMs: number;
  /** Permissions. */
  mode: number;
  /** A second name of the same file instead of a copy. */
  isLink: boolean;
  /** Space to keep free on the disk, bytes. */
  minFreeBytes: number;
  signal: AbortSignal;
}

/**
 * Puts a copy of a file, or text, into a folder: complete, flushed, and only if nothing has the name. Returns its mark. Blocks that
 * the file system can share are shared.
 *
 * @throws the file system's errors, EEXIST if something has the name; `disk_full`; `signal.reason`
 */
export async function placeFile(
  source: OpenResult | string,
  folder: OpenFolder,
  name: string,
  options: PlaceOptions,
): Promise<FileMark> {
  const [draft, path] = [join(folder.path, options.draft), join(folder.path, name)];
  if (options.isLink && typeof source !== "string") await linkResult(source.path, path);
  else {
    await rm(draft, { force: true });
    try {
      await writeDraft(source, draft, folder, options);
      await renameExclusively(draft, path);
    } finally {
      await rm(draft, { force: true });
    }
  }
  await folder.sync();
  const { size, mtimeMs } = await lstat(path);
  return { size, modifiedMs: Math.floor(mtimeMs) };
}

/**
 * Checks that a file in one folder, which is created if there is none, can have a second name in the other. What else may fail shows when a
 * file is put there.
 *
 * @throws Error that names both if they are on two file systems or in two mounts
 */
export async function assertLinkable(from: string, to: string): Promise<void> {
  const name = `.unreel-link-${randomUUID()}`;
  const [source, path] = [join(from, name), join(to, name)];
  try {
    await createDurably(from);
    await writeFile(source, "", { flag: "wx", mode: 0o600 });
    await linkResult(source, path);
  } catch (cause) {
    if (cause instanceof ServiceError) throw new Error(`${cause.message}; got ${from} and ${to}`, { cause });
  } finally {
    await Promise.allSettled([source, path].map((each) => rm(each, { force: true })));
  }
}

async function linkResult(from: string, path: string): Promise<void> {
  try {
    await link(from, path);
  } catch (error) {
    if (systemErrorCode(error) !== "EXDEV") throw error;
    // Linux refuses it between two mounts of one file system, too.
    const rule =
      "LIBRARY_LINK=hard needs LIBRARY_DIR and DATA_DIR on one file system and, as in a container, in one mount of it";
    throw new ServiceError("unavailable", rule, { cause: error });
  }
}

async function writeDraft(source: OpenResult | string, draft: string, folder: OpenFolder, options: PlaceOptions) {
  const isCloned = typeof source !== "string" && (await clone(source.path, draft));
  await using handle = await open(draft, isCloned ? noFollow.update : "wx", 0o600);
  if (typeof source === "string") await handle.writeFile(source);
  else if (!isCloned) await copy(source, handle, folder, options);
  await setMode(handle, options.mode);
  const time = new Date(options.modifiedMs);
  await handle.utimes(time, time);
  await handle.sync();
}

/** Returns false if the file system cannot share blocks, or the files are not on the same one. */
async function clone(from: string, draft: string): Promise<boolean> {
  try {
    await copyFile(from, draft, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
    return true;
  } catch {
    await rm(draft, { force: true });
    return false;
  }
}

const chunkBytes = 1024 * 1024;

async function copy(
  { handle: from, size }: OpenResult,
  to: FileHandle,
  folder: OpenFolder,
  { minFreeBytes, signal }: PlaceOptions,
): Promise<void> {
  const { bavail, bsize } = await statfs(folder.path);
  const freeBytes = bavail * bsize;
  if (freeBytes < size + minFreeBytes) {
    const rule = `the file has ${size} bytes and ${minFreeBytes} must stay free (MIN_FREE_BYTES)`;
    throw new ServiceError("disk_full", `not enough space in LIBRARY_DIR: ${rule}, ${freeBytes} are`);
  }
  const chunk = Buffer.allocUnsafe(chunkBytes);
  for (let at = 0; at < size;) {
    signal.throwIfAborted();
    const { bytesRead } = await from.read(chunk, 0, chunkBytes, at);
    if (bytesRead === 0) throw new ServiceError("internal", `the file has ${at} bytes instead of ${size}`);
    await to.writeFile(chunk.subarray(0, bytesRead));
    at += bytesRead;
  }
}

/** Renames a file; never replaces another. @throws EEXIST */
export async function renameExclusively(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (!isUnsupported(error) && systemErrorCode(error) !== "EMLINK") throw error;
    // The file system has no links: an empty file takes the name first.
    await (await open(to, "wx", 0o600)).close();
    await rename(from, to);
  }
}

/** Returns whether the file is there as it was put there; undefined: there is none. */
export async function isUnchanged(folder: OpenFolder, name: string, mark: FileMark): Promise<boolean | undefined> {
  const found = await unlessMissing(lstat(join(folder.path, name)));
  return found && found.isFile() && found.size === mark.size && Math.floor(found.mtimeMs) === mark.modifiedMs;
}

/** Removes a file that is there as it was put there. */
export async function removeUnchanged(folder: OpenFolder, name: string, mark: FileMark): Promise<void> {
  if ((await isUnchanged(folder, name, mark)) !== true) return;
  await rm(join(folder.path, name));
  await folder.sync();
}
