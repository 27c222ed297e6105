import { randomUUID } from "node:crypto";
import { open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Shares } from "../../async/shares.ts";
import { unlessMissing } from "../../files/disk-error.ts";
import { createDurably, isTaskId, syncFolder } from "../../files/disk.ts";
import { oldMs } from "../../files/files.ts";
import { noFollow } from "../../files/no-follow.ts";
import type { LibraryFile, Task } from "../../model/task.ts";
import type { TaskStore } from "../../stores/store.ts";

/**
 * What is to be done for a task: its files are to be put into the library once it has succeeded, as `files` if their paths have been
 * chosen; or these files are to be removed. `owner` is that of the task; absent: it has none, or an earlier version noted it.
 */
export type LibraryJob = PlaceJob | { kind: "remove"; files: LibraryFile[] };
export type PlaceJob = { kind: "place"; owner?: string | undefined; files?: LibraryFile[] };

export type LibraryJobs = ReturnType<typeof createLibraryJobs>;

/**
 * Keeps the jobs of all processes that share `folder`. They survive `SIGKILL` and power loss. What is to be put there and what is to be
 * removed are files of their own: one process may want to have removed what another one is putting there, and neither overwrites the other.
 */
export function createLibraryJobs(folder: string) {
  const pathOf = (id: string, ending = placeEnding) => join(folder, `${id}${ending}`);
  const chosen = createChosenNames();

  async function read(id: string): Promise<LibraryJob | undefined> {
    const [place, removal] = [await readJob(pathOf(id)), await readJob(pathOf(id, removalEnding))];
    chosen.note(id, place);
    if (removal === undefined) return place;
    return { kind: "remove", files: [...(removal.files ?? []), ...(place?.files ?? [])] };
  }

  return {
    /** Returns the job of a task; if its files are to be put there and to be removed, they are to be removed. */
    read,
    async write(id: string, job: LibraryJob): Promise<void> {
      await createDurably(folder);
      const ending = job.kind === "place" ? placeEnding : removalEnding;
      await writeDurably(folder, `${id}${ending}`, JSON.stringify(job));
      if (job.kind === "place") chosen.note(id, job);
    },
    namesOfOthers: chosen.namesOfOthers,
    async ids(): Promise<string[]> {
      await createDurably(folder);
      const names = await readdir(folder);
      await Promise.all(
        names.filter((name) => name.endsWith(draftEnding)).map((name) => removeOld(join(folder, name))),
      );
      const ids = [...new Set(names.map((name) => name.replace(/(?:\.remove)?\.json$/, "")))].filter(isTaskId);
      chosen.keep(new Set(ids));
      return ids;
    },
    /** Ends the job, of what is to be put there only that; safe to call twice. */
    async remove(id: string, kind?: "place"): Promise<void> {
      await rm(pathOf(id), { force: true });
      chosen.note(id, undefined);
      if (kind === undefined) await rm(pathOf(id, removalEnding), { force: true });
    },
    /** Whether nothing was written for a week: the task may belong to another store before. */
    isOld: (id: string): Promise<boolean> => isOld(pathOf(id)),
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

async function readJob(path: string): Promise<LibraryJob | undefined> {
  try {
    const text = await unlessMissing(readFile(path, { encoding: "utf8", flag: noFollow.read }));
    return text === undefined ? undefined : (JSON.parse(text) as LibraryJob);
  } catch (error) {
    // A disk has damaged it: names are chosen again.
    if (error instanceof SyntaxError) return { kind: "place" };
    throw error;
  }
}

/** Remembers which paths are chosen for files that are not known to be there. */
function createChosenNames() {
  const byTask = new Map<string, readonly string[]>();
  return {
    note(id: string, job: LibraryJob | undefined): void {
      const paths = job?.kind === "place" ? job.files?.map(({ path }) => path) : undefined;
      if (paths === undefined) byTask.delete(id);
      else byTask.set(id, paths);
    },
    /** Forgets all other tasks: another process may have ended their jobs. */
    keep(ids: ReadonlySet<string>): void {
      for (const id of byTask.keys()) if (!ids.has(id)) byTask.delete(id);
    },
    /**
     * Returns the names in a folder of the library that are chosen for files of other tasks than this one, as far as this process has read
     * or written their jobs. Nothing may have them yet.
     */
    namesOfOthers(id: string, folders: readonly string[]): string[] {
      const start = folders.map((name) => `${name}/`).join("");
      const others = [...byTask].flatMap(([other, paths]) => (other === id ? [] : paths));
      return others.filter((path) => path.startsWith(start)).map((path) => path.slice(start.length));
    },
  };
}

const placeEnding = ".json";
const removalEnding = ".remove.json";
const draftEnding = ".new";

/** Removes the draft of a process that was killed a week ago. */
async function removeOld(path: string): Promise<void> {
  if (await isOld(path)) await rm(path, { force: true });
}

/** Returns false if there is no such file. */
async function isOld(path: string): Promise<boolean> {
  const found = await unlessMissing(stat(path));
  return found !== undefined && Date.now() - found.mtimeMs > oldMs;
}

/** Writes a file that is there wholly or not at all, also if several write it at once. */
export async function writeDurably(folder: string, name: string, text: string): Promise<void> {
  const draft = join(folder, `${name}.${randomUUID()}${draftEnding}`);
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(draft, { force: true }));
  const handle = cleanup.use(await open(draft, "wx", 0o600));
  await handle.writeFile(text);
  await handle.sync();
  await rename(draft, join(folder, name));
  await syncFolder(folder);
}

/** Whether the files of a task that has succeeded are still to be put into the library, which has not failed until now. */
export async function isPending({ id, state, file, library }: Task, jobs: LibraryJobs): Promise<boolean> {
  if (state !== "succeeded" || file === null || library !== undefined || file.warnings?.some(isLibraryFailure))
    return false;
  const job = await jobs.read(id).catch(() => undefined);
  return job?.kind === "place";
}

/** Members that are read at a time. */
const membersAtOnce = 50;

interface MemberReads {
  jobs: LibraryJobs;
  store: Pick<TaskStore, "list">;
  /** One page of members in each turn of the event loop, however many collections there are; owners take turns. */
  turns: Shares;
  signal: AbortSignal;
}

/** Yields the members of a collection, by index, that `isPending`. */
export async function* findPendingMembers(
  { id: parent, owner = "" }: Task,
  { jobs, store, turns, signal }: MemberReads,
) {
  const ids = new Set(await jobs.ids());
  let before: number | undefined;
  do {
    if (ids.size === 0) return;
    setImmediate(await turns.wait(owner, signal));
    const page = await store.list({ parent, state: "succeeded", limit: membersAtOnce, before });
    for (const task of page.tasks) if (ids.has(task.id) && (await isPending(task, jobs))) yield task;
    before = page.next;
  } while (before !== undefined);
}

/** Whether a warning of a file says that it could not be put into the library. */
export function isLibraryFailure({ code }: { code: string }): boolean {
  return code === "library_failed";
}

/** Returns a file with the warning that it could not be put into the library, because of `message`; undefined: without such a warning. */
export function withFailure(file: NonNullable<Task["file"]>, message: string | undefined): NonNullable<Task["file"]> {
  const others = (file.warnings ?? []).filter((warning) => !isLibraryFailure(warning));
  return { ...file, warnings: message === undefined ? others : [...others, { code: "library_failed", message }] };
}

/** Returns whose file is to be put there; `""`: nobody's, or it is unknown. */
export function ownerOf(job: LibraryJob | undefined): string {
  return (job?.kind === "place" ? job.owner : undefined) ?? "";
}
