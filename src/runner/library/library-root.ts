import { randomUUID } from "node:crypto";
import { open, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isMissing, isTaken, unlessMissing } from "../../files/disk-error.ts";
import { createDurably } from "../../files/disk.ts";
import { noFollow } from "../../files/no-follow.ts";
import { messageOf, ServiceError } from "../../model/errors.ts";
import { openFolder, type OpenFolder } from "./folders.ts";
import { writeDurably } from "./jobs.ts";
import { renameExclusively } from "./place-file.ts";

/** In the library's folder: says that this is the disk that the service has used before. */
const markName = ".unreel-library";

/** In the folder of the jobs: which folder was used, and what its mark is. */
const memoryName = "folder.json";

/**
 * Opens the library's folder. On first use it gets a file with a mark; later a folder without that mark is refused, as the empty
 * folder is where a disk is not mounted.
 *
 * @throws ServiceError `unavailable` if the folder has not its mark; the file system's errors
 */
export async function openLibraryRoot(folder: string, jobsFolder: string): Promise<OpenFolder> {
  const root = await openFolder(folder, folder, true).catch((cause: unknown) => {
    throw isMissing(cause) ? new ServiceError("unavailable", "there is no folder at LIBRARY_DIR", { cause }) : cause;
  });
  try {
    const known = await readMemory(folder, jobsFolder);
    const mark = await readMark(root);
    if (known === undefined) await remember(folder, jobsFolder, mark ?? (await writeMark(root)));
    else if (mark !== known) {
      const rule = `its file ${markName} is ${mark === undefined ? "missing" : "another one"}`;
      const hint = `if it is the right folder, remove ${join(jobsFolder, memoryName)}`;
      throw new ServiceError("unavailable", `LIBRARY_DIR is not the folder that was used before, ${rule}; ${hint}`);
    }
    return root;
  } catch (error) {
    await root[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Returns the mark of a folder that was used before.
 *
 * @throws Error if what was noted of it cannot be read
 */
export async function readMemory(folder: string, jobsFolder: string): Promise<string | undefined> {
  const path = join(jobsFolder, memoryName);
  try {
    const text = await unlessMissing(readFile(path, { encoding: "utf8", flag: noFollow.read }));
    const memory = text === undefined ? undefined : (JSON.parse(text) as { folder: string; mark: string });
    return memory?.folder === resolve(folder) ? memory.mark : undefined;
  } catch (cause) {
    const hint = "if LIBRARY_DIR is the right folder, remove it";
    throw new Error(`${path} must say which folder was used before: ${messageOf(cause)}; ${hint}`, { cause });
  }
}

async function remember(folder: string, jobsFolder: string, mark: string): Promise<void> {
  await createDurably(jobsFolder);
  await writeDurably(jobsFolder, memoryName, JSON.stringify({ folder: resolve(folder), mark }));
}

/** Longer than a UUID: what others write there is not read to its end. */
const maxMarkBytes = 64;

async function readMark(root: OpenFolder): Promise<string | undefined> {
  await using file = await unlessMissing(open(join(root.path, markName), noFollow.read));
  if (file === undefined) return undefined;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(maxMarkBytes), 0, maxMarkBytes, 0);
  return bytesRead === 0 ? undefined : buffer.toString("utf8", 0, bytesRead);
}

async function writeMark(root: OpenFolder): Promise<string> {
  const mark = randomUUID();
  const draft = join(root.path, `${markName}-${mark}`);
  await writeFile(draft, mark, { flag: "wx", mode: 0o644, flush: true });
  try {
    await renameExclusively(draft, join(root.path, markName));
    await root.sync();
    return mark;
  } catch (error) {
    // Another service has made it meanwhile.
    const other = isTaken(error) ? await readMark(root) : undefined;
    if (other === undefined) throw error;
    return other;
  } finally {
    await rm(draft, { force: true });
  }
}
