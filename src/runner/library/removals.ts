import { untilAborted } from "../../async/deadline.ts";
import { Shares } from "../../async/shares.ts";
import type { LibraryFile, Task } from "../../model/task.ts";

export interface RemovalsOptions {
  /** Removes these files of a task; never rejects. */
  removeFiles(id: string, files: readonly LibraryFile[]): Promise<unknown>;
  /** How long a request waits, milliseconds; default five seconds. */
  patienceMs?: number;
}

/** Calls of a disk that does not respond take threads of the process, all of whose files need them. */
const removalsAtOnce = 4;

/**
 * Returns a function that removes files while a request waits. A few are removed at a time; owners take turns. The request does not wait for a
 * disk that hangs: what is not done within `patienceMs` ends whenever the disk lets it, and until then no other removal is begun.
 */
export function createRemovals({ removeFiles, patienceMs = 5_000 }: RemovalsOptions) {
  const places = new Shares(removalsAtOnce, { isFirm: true });
  /** Removals that nobody waits for any more. */
  let hanging = 0;

  return async ({ id, owner = "" }: Pick<Task, "id" | "owner">, files: readonly LibraryFile[]): Promise<void> => {
    if (hanging > 0) return;
    const patience = AbortSignal.timeout(patienceMs);
    try {
      const release = await places.wait(owner, patience);
      if (hanging > 0) return release();
      const removed = removeFiles(id, files).finally(release);
      await untilAborted(removed, patience).catch((error: unknown) => {
        hanging += 1;
        void removed.finally(() => (hanging -= 1));
        throw error;
      });
    } catch (error) {
      if (!patience.aborted) throw error;
    }
  };
}
