import { mkdir, open, readdir, rename, rm, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { diskError, isMissing } from "./disk-error.ts";
import { ServiceError } from "../errors.ts";
import type { FileStore } from "./files.ts";

/**
 * A file store on the disk: results are `<folder>/files/<id>`, parts are in `<folder>/parts/<id>/`. Both
 * are on one file system, since a result is moved there by renaming it. Folders are made where they
 * are needed.
 */
export function openDiskFiles({ folder }: { folder: string }): FileStore {
  const results = join(folder, "files");
  const parts = join(folder, "parts");

  return {
    openWorkFolder: (id) =>
      attempt(`make the parts folder of task ${id}`, async () => {
        const path = join(parts, knownId(id));
        await mkdir(path, { recursive: true });
        return path;
      }),

    removeWorkFolder: (id) =>
      attempt(`remove the parts of task ${id}`, async () => {
        if (isTaskId(id)) await removeAll(join(parts, id));
      }),

    saveResult: (id, path) =>
      attempt(`keep the file of task ${id}`, async () => {
        await makeFolder(results);
        await rename(path, join(results, knownId(id)));
        await syncFolder(results);
        await syncFolder(dirname(path));
        await removeAll(join(parts, id));
      }),

    open: (id) =>
      attempt(`open the file of task ${id}`, async () => {
        const handle = isTaskId(id) ? await openExisting(join(results, id)) : undefined;
        if (handle === undefined) return undefined;
        try {
          return { handle, size: (await handle.stat()).size };
        } catch (error) {
          await handle.close();
          throw error;
        }
      }),

    remove: (id) =>
      attempt(`remove the file of task ${id}`, async () => {
        if (!isTaskId(id)) return;
        await rm(join(results, id), { force: true });
        await removeAll(join(parts, id));
      }),

    ids: () =>
      attempt("list the files", async () => {
        const names = await Promise.all([results, parts].map(namesIn));
        return [...new Set(names.flat().filter(isTaskId))];
      }),

    freeBytes: () =>
      attempt("read how much room there is", async () => {
        await mkdir(folder, { recursive: true });
        const { bavail, bsize } = await statfs(folder);
        return bavail * bsize;
      }),
  };
}

async function attempt<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw diskError(what, error);
  }
}

/** As they are written in this service: an id is part of a path only where it can be nothing else. */
function isTaskId(id: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id);
}

function knownId(id: string): string {
  if (isTaskId(id)) return id;
  throw new ServiceError("not_found", `there are no files of task ${id.slice(0, 100)}`);
}

/** Makes the folder and puts it, and those above it that were missing, where power loss cannot reach. */
async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  const last = dirname(first);
  for (let made = path; made !== last; made = dirname(made)) await syncFolder(dirname(made));
}

async function syncFolder(path: string): Promise<void> {
  // Windows cannot open a folder, and writes down renames by itself.
  if (process.platform === "win32") return;
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Again where something appears in the folder while it is being removed. */
async function removeAll(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
}

async function openExisting(path: string) {
  try {
    return await open(path, "r");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
