import type { Task } from "../../model/task.ts";
import type { TaskStore } from "../../stores/store.ts";
import type { LibraryJobs } from "./jobs.ts";

/** Whether the files of a task that has succeeded are still to be put into the library, which has not failed until now. */
export async function isPending({ id, state, file, library }: Task, jobs: LibraryJobs): Promise<boolean> {
  if (state !== "succeeded" || file === null || library !== undefined || file.warnings?.some(isFailure)) return false;
  const job = await jobs.read(id).catch(() => undefined);
  return job?.kind === "place";
}

/** Members that are read at a time. */
const membersAtOnce = 50;

/** Yields the members of a collection, by index, of which that is so. */
export async function* findPendingMembers(parent: string, jobs: LibraryJobs, store: Pick<TaskStore, "list">) {
  const ids = new Set(await jobs.ids());
  let before: number | undefined;
  do {
    if (ids.size === 0) return;
    const page = await store.list({ parent, state: "succeeded", limit: membersAtOnce, before });
    for (const task of page.tasks) if (ids.has(task.id) && (await isPending(task, jobs))) yield task;
    before = page.next;
  } while (before !== undefined);
}

export function isFailure({ code }: { code: string }): boolean {
  return code === "library_failed";
}
