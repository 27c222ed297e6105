import { untilAborted } from "../../async/deadline.ts";
import { Shares } from "../../async/shares.ts";
import type { LibraryFile, Task } from "../../model/task.ts";

interface RemovalsOptions {
  /** Removes these files of a task; never rejects. */
  removeFiles(id: string, files: readonly LibraryFile[]): Promise<unknown>;
  /** How long a request waits, milliseconds; default five seconds. */
  timeoutMs?: number;
}

/** Calls of a disk that does not respond take threads of the process, all of whose files need them. */
const removalsAtOnce = 4;

/**
 * Returns a function that removes files while a request waits. A few are removed at a time; owners take turns. The request does not wait for a
 * disk that hangs: what is not done within `timeoutMs` ends whenever the disk lets it, and until then no other removal is begun.
 */
export function createRemovals({ removeFiles, timeoutMs = 5_000 }: RemovalsOptions) {
  const places = new Shares(removalsAtOnce, { isFirm: true });
  /** Removals that nobody waits for any more. */
  let hanging = 0;

  return async ({ id, owner = "" }: Pick<Task, "id" | "owner">, files: readonly LibraryFile[]): Promise<void> => {
    if (hanging > 0) return;
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      const release = await places.wait(owner, timeout);
      if (hanging > 0) return release();
      const removed = removeFiles(id, files).finally(release);
      await untilAborted(removed, timeout).catch((error: unknown) => {
        hanging += 1;
        void removed.finally(() => (hanging -= 1));
        throw error;
      });
    } catch (error) {
      if (!timeout.aborted) throw error;
    }
  };
}
