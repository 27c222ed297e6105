import type { Stats } from "node:fs";
import { lstat, mkdir, open, readdir, rename, rm, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { unlessMissing, withDiskError } from "./disk-error.ts";
import { ServiceError } from "../model/errors.ts";
import { type FileStore, inUseMs, oldMs, type OpenResult } from "./files.ts";
import { openMediaStream } from "./media-stream.ts";
import { markStream } from "./stream-run.ts";
import { assertKind, noFollow } from "./no-follow.ts";
import { requestStream } from "./stream-request.ts";

/** Tasks whose files are looked up one by one; for more, the folders are listed, which is quicker. */
const mostLookedUp = 200;

/**
 * Opens a file store on disk: results are `<folder>/files/<id>` with `<folder>/others/<id>/<number>`, work folders
 * `<folder>/parts/<id>/`. All are on one file system, as a result is moved by renaming it. Folders are created on first
 * use. In these three folders no symbolic link is followed.
 */
export function openDiskFiles({ folder }: { folder: string }): FileStore {
  const results = join(folder, "files");
  const otherResults = join(folder, "others");
  const workFolders = join(folder, "parts");
  async function removeAll(id: string): Promise<void> {
    await rm(join(results, id), { force: true });
    await removeFolder(join(otherResults, id));
    await removeFolder(join(workFolders, id));
  }

  return {
    ...createWorkFolders(workFolders),
    ...createListings([results, otherResults, workFolders]),

    saveResult: (id, path, others = []) =>
      withDiskError(`save the file of task ${id}`, async () => {
        const result = join(results, requireTaskId(id));
        for (const each of [path, ...others]) assertKind(each, await lstat(each), "file");
        await createDurably(results);
        // The medium is the last: a result that has it is complete.
        await saveOthers(join(otherResults, id), others);
        await rename(path, result);
        await syncFolder(results);
        await syncFolder(dirname(path));
        await removeFolder(join(workFolders, id));
      }),

    open: (id, number = 0) =>
      ofTask("open the file", id, undefined, () =>
        openResult(number === 0 ? join(results, id) : join(otherResults, id, String(number)), id),
      ),

    remove: (id) => ofTask("remove the file", id, undefined, () => removeAll(id)),

    isInUse: (id) =>
      ofTask("look at the file", id, false, async () => {
        const others = join(otherResults, id);
        const names = (await unlessMissing(readdir(others))) ?? [];
        for (const path of [join(results, id), ...names.map((name) => join(others, name))]) {
          const found = await unlessMissing(lstat(path));
          if (found !== undefined && isMarked(found)) return true;
        }
        return false;
      }),

    freeBytes: () =>
      withDiskError("read the free disk space", async () => {
        await mkdir(folder, { recursive: true });
        const { bavail, bsize } = await statfs(folder);
        return bavail * bsize;
      }),
  };
}

/** Does `work` on what a task has on the disk; of an unknown id there is nothing, and `none` is returned. */
function ofTask<T>(tried: string, id: string, none: T, work: () => Promise<T>): Promise<T> {
  return withDiskError(`${tried} of task ${id}`, async () => (isTaskId(id) ? work() : none));
}

/** Moves files into a new folder, numbered from 1 on. Without files there is no folder. */
async function saveOthers(folder: string, paths: readonly string[]): Promise<void> {
  await removeFolder(folder);
  if (paths.length === 0) return;
  await createDurably(folder);
  for (const [index, path] of paths.entries()) await rename(path, join(folder, String(index + 1)));
  await syncFolder(folder);
}

type Listings = Pick<FileStore, "withFiles" | "ids">;

/** @param folders What is in them has the name of a task. */
function createListings(folders: readonly string[]): Listings {
  async function hasFiles(id: string): Promise<boolean> {
    for (const parent of folders) {
      if ((await unlessMissing(lstat(join(parent, id)))) !== undefined) return true;
    }
    return false;
  }

  /** Returns names of files and folders; those of a task may be there several times. */
  async function listNames(): Promise<string[]> {
    const names = await Promise.all(folders.map((path) => unlessMissing(readdir(path))));
    return names.flatMap((found) => found ?? []);
  }

  return {
    withFiles: (ids) =>
      withDiskError("find the files of tasks", async () => {
        const wanted = new Set(ids.filter(isTaskId));
        if (wanted.size > mostLookedUp) return new Set((await listNames()).filter((name) => wanted.has(name)));
        const found = new Set<string>();
        for (const id of wanted) if (await hasFiles(id)) found.add(id);
        return found;
      }),

    ids: () => withDiskError("list the files", async () => [...new Set((await listNames()).filter(isTaskId))]),
  };
}

type WorkFolders = Pick<
  FileStore,
  "openWorkFolder" | "removeWorkFolder" | "removeOldWorkFolder" | "openStream" | "markStream"
>;

function createWorkFolders(folder: string): WorkFolders {
  return {
    openWorkFolder: (id) =>
      withDiskError(`create the work folder of task ${id}`, async () => {
        const path = join(folder, requireTaskId(id));
        await mkdir(path, { recursive: true });
        assertKind(path, await lstat(path), "folder");
        return path;
      }),

    removeWorkFolder: (id) => ofTask("remove the work folder", id, undefined, () => removeFolder(join(folder, id))),

    removeOldWorkFolder: (id) =>
      ofTask("remove the work folder", id, true, async () => {
        const path = join(folder, id);
        if (Date.now() - (await lastWrittenMs(path)) < oldMs) return false;
        await removeFolder(path);
        return true;
      }),

    openStream: (id) =>
      ofTask("open the stream", id, undefined, async () => {
        const path = join(folder, id);
        const stream = await openMediaStream(path);
        if (stream === undefined) await requestStream(path);
        return stream;
      }),

    markStream: (id) => ofTask("mark the stream", id, undefined, () => markStream(join(folder, id))),
  };
}

async function openResult(path: string, id: string): Promise<OpenResult | undefined> {
  const handle = await unlessMissing(open(path, noFollow.read));
  if (handle === undefined) return undefined;
  try {
    const found = await handle.stat();
    assertKind(path, found, "file");
    return {
      handle,
      path,
      size: found.size,
      markInUse: () =>
        withDiskError(`mark the file of task ${id} as in use`, async () => {
          await handle.utimes(new Date(Date.now() + inUseMs), found.mtime);
          return (await handle.stat()).nlink > 0;
        }),
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/**
 * Returns whether the file was marked as in use: its access time, which nothing else sets to the future, is when
 * that ends. Later than twice the mark's length, for clocks of machines that differ, it was set by a clock that
 * has been set back since.
 */
function isMarked({ atimeMs }: Stats): boolean {
  // A file that was read within this millisecond is not marked.
  const leftMs = Math.floor(atimeMs) - Date.now();
  return leftMs > 0 && leftMs < 2 * inUseMs;
}

/** Returns when the folder or something in it was last written; -Infinity if there is no such folder. */
async function lastWrittenMs(folder: string): Promise<number> {
  const found = await unlessMissing(lstat(folder));
  const names = found?.isDirectory() ? await unlessMissing(readdir(folder, { recursive: true })) : undefined;
  let lastMs = found?.mtimeMs ?? -Infinity;
  for (const name of names ?? []) {
    const inside = await unlessMissing(lstat(join(folder, name)));
    lastMs = Math.max(lastMs, inside?.mtimeMs ?? -Infinity);
  }
  return lastMs;
}

/** Returns whether `id` is a UUID as this service writes it; only then is it used in a path. */
export function isTaskId(id: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id);
}

/** @throws ServiceError `not_found` if `id` is not a task id. */
function requireTaskId(id: string): string {
  if (isTaskId(id)) return id;
  throw new ServiceError("not_found", `there are no files of task ${id.slice(0, 100)}`);
}

/** Creates the folder and its missing parents, and makes them durable. */
export async function createDurably(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  const last = dirname(first);
  for (let created = path; created !== last; created = dirname(created)) await syncFolder(dirname(created));
}

/** Resolves once renames in the folder are on the disk. */
export async function syncFolder(path: string): Promise<void> {
  // Windows cannot open a folder; it makes renames durable by itself.
  if (process.platform === "win32") return;
  await using handle = await open(path, "r");
  await handle.sync();
}

/** Retries if files appear in the folder while it is being removed. */
async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
}
