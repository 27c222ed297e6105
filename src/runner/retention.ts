import { setTimeout as sleep } from "node:timers/promises";
import type { BaseLogger } from "pino";
import { isServiceError, logFieldsOf } from "../model/errors.ts";
import type { FileStore } from "../files/files.ts";
import type { Clock } from "../stores/clock.ts";
import type { TaskStore } from "../stores/store.ts";
import { endStates, type Task } from "../model/task.ts";
import { logOutages } from "../async/outages.ts";

/** Records read at a time: a record may be large, and parsing it blocks the thread. */
const batchSize = 50;

/** Pause between two batches, so that a long list does not slow other work. */
const batchPauseMs = 50;

const longestPauseMs = 60_000;

/**
 * Deletes tasks that ended more than `retentionS` (0: never) ago, with their files, until `signal` is aborted; those whose
 * file is in use, once it is not; members with their collection. Pauses for a tenth of `retentionS`, at most a minute, between two passes.
 * Several processes may do so at the same time. Never rejects.
 *
 * Of the time of day and the steady clock the earlier one counts: a clock that is set forward while this runs
 * deletes nothing too early.
 */
export async function deleteExpired(options: {
  store: TaskStore;
  files: FileStore;
  retentionS: number;
  signal: AbortSignal;
  logger: Pick<BaseLogger, "error" | "info">;
  clock: Clock;
}): Promise<void> {
  const { store, files, retentionS, signal, logger, clock } = options;
  if (retentionS === 0) return;
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => undefined);
  /** Ids of tasks whose files could not be removed, which the log says once. */
  const unremoved = new Set<string>();

  async function pass(state: Task["state"]): Promise<void> {
    let before: number | undefined;
    do {
      const { tasks, next } = await store.list({ state, limit: batchSize, before });
      const nowMs = Math.min(clock.now().getTime(), clock.steadyMs());
      const endsBefore = new Date(nowMs - retentionS * 1000).toISOString();
      const expired = tasks.filter(({ finished_at }) => (finished_at ?? endsBefore) < endsBefore);
      await Promise.all(expired.map(deleteTask));
      before = next;
      if (before !== undefined) await pause(batchPauseMs);
    } while (before !== undefined && !signal.aborted);
  }

  async function deleteTask({ id, state, kind }: Task): Promise<void> {
    try {
      // Before the record: a file without a record would stay for ever.
      const members = kind === undefined ? [] : await store.ownMembers(id);
      for (const member of members) if (!(await files.removeUnused(member))) return;
      if (state === "succeeded" && !(await files.removeUnused(id))) return;
    } catch (err) {
      if (!unremoved.has(id)) {
        logger.error({ task: id, ...logFieldsOf(err) }, "the file of a task past its retention could not be removed");
      }
      unremoved.add(id);
      return;
    }
    unremoved.delete(id);
    try {
      await store.delete(id);
    } catch (error) {
      if (!isServiceError(error, "not_found")) throw error;
    }
  }

  const attempt = logOutages(logger, {
    failed: "tasks past their retention cannot be deleted",
    restored: "tasks past their retention can be deleted again",
  });
  while (!signal.aborted) {
    await attempt(async () => {
      for (const state of endStates) await pass(state);
    });
    await pause(Math.min(retentionS * 100, longestPauseMs));
  }
}
