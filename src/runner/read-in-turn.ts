import { setTimeout as sleep } from "node:timers/promises";
import type { KeyedMutex } from "../async/keyed-mutex.ts";
import type { TaskChange } from "../feed/task-changes.ts";
import { ServiceError } from "../model/errors.ts";
import type { TaskRun } from "./task-lease.ts";

/** What the readings of pages in this process have in common. */
export interface ReadingTurns {
  /** Readings of pages that may have ended processes follow one another. */
  mutex: KeyedMutex;
  /** How long a reading waits after three deaths, twice as long after four; default 4,000 milliseconds. */
  crashPauseMs?: number | undefined;
}

/** After this many processes in a row the page is taken for the cause. */
const maxStalled = 5;

/**
 * Calls `read`, which reads a task's page: of all that a run does only this happens in the service's own process,
 * which the page may end. `stalledCount` processes in a row have ended while they read it. One may have had any reason,
 * or another page that was read beside it. After two, no two such pages are read at a time. After more, `read` also
 * waits, so that kills in quick succession are not taken for the page's fault. Other tasks run meanwhile.
 *
 * @param options `stalledCount`: default that of the claim; `change`: of the task, stored with the count before `read` is called.
 * @throws ServiceError `internal` after five; `signal.reason` or an AbortError if aborted before `read` is called;
 * errors of `read` and the lease.
 */
export async function readInTurn<T>(
  read: () => Promise<T>,
  { claim, taskLease, controller: { signal } }: TaskRun,
  { mutex, crashPauseMs = 4_000 }: ReadingTurns,
  { stalledCount = claim.stalledCount, change = {} }: { stalledCount?: number; change?: TaskChange } = {},
): Promise<T> {
  const countedRead = async () => {
    await taskLease.updateWithRetry(change, { stalledCount: stalledCount + 1 });
    return read();
  };
  if (stalledCount >= maxStalled) throw poisonTaskError(stalledCount);
  if (stalledCount < 2) return countedRead();
  if (stalledCount > 2) await sleep(crashPauseMs * 2 ** (stalledCount - 3), undefined, { signal });
  return mutex.runExclusive("readings", () => {
    signal.throwIfAborted();
    return countedRead();
  });
}

function poisonTaskError(stalledCount: number): ServiceError {
  const message = `poison task: ${stalledCount} processes in a row died reading its page`;
  return new ServiceError("internal", message, { retryable: false });
}
