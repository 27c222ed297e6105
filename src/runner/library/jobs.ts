import { open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { isMissing } from "../../files/disk-error.ts";
import { createFolder, isTaskId, syncFolder } from "../../files/disk.ts";
import { oldMs } from "../../files/files.ts";
import type { LibraryFile } from "../../model/task.ts";

/**
 * What is to be done for a task: its files are to be put into the library once it has succeeded, as `files` if their paths have been
 * chosen; or these files are to be removed.
 */
export type LibraryJob = { kind: "place"; files?: LibraryFile[] } | { kind: "remove"; files: LibraryFile[] };

export type LibraryJobs = ReturnType<typeof createLibraryJobs>;

/** Keeps the jobs of all processes that share `folder`: one file for each. They survive `SIGKILL` and power loss. */
export function createLibraryJobs(folder: string) {
  const pathOf = (id: string) => join(folder, `${id}.json`);

  async function read(id: string): Promise<LibraryJob | undefined> {
    try {
      return JSON.parse(await readFile(pathOf(id), "utf8")) as LibraryJob;
    } catch (error) {
      if (isMissing(error)) return undefined;
      // A disk has damaged it: names are chosen again.
      if (error instanceof SyntaxError) return { kind: "place" };
      throw error;
    }
  }

  async function write(id: string, job: LibraryJob): Promise<void> {
    await createFolder(folder);
    await writeDurably(folder, `${id}.json`, JSON.stringify(job));
  }

  return {
    read,
    write,
    async ids(): Promise<string[]> {
      await createFolder(folder);
      const names = await readdir(folder);
      return names.map((name) => name.replace(/\.json$/, "")).filter(isTaskId);
    },
    async remove(id: string): Promise<void> {
      await rm(pathOf(id), { force: true });
    },
    /** Whether nothing was written for a week: the task may belong to another store before. */
    async isOld(id: string): Promise<boolean> {
      return Date.now() - (await stat(pathOf(id))).mtimeMs > oldMs;
    },
    /** Returns what only one process has at a time, until it is disposed of or the process ends; undefined if another has it. */
    tryLock(): Disposable | undefined {
      const lock = new DatabaseSync(join(folder, "lock.db"), { timeout: 0 });
      try {
        lock.exec("BEGIN EXCLUSIVE");
        return { [Symbol.dispose]: () => lock.close() };
      } catch (error) {
        lock.close();
        // SQLITE_BUSY
        if (error instanceof Error && "errcode" in error && error.errcode === 5) return undefined;
        throw error;
      }
    },
  };
}

/** Writes a file that is there wholly or not at all. */
export async function writeDurably(folder: string, name: string, text: string): Promise<void> {
  const draft = join(folder, `${name}.new`);
  {
    await using handle = await open(draft, "w", 0o600);
    await handle.writeFile(text);
    await handle.sync();
  }
  await rename(draft, join(folder, name));
  await syncFolder(folder);
}
