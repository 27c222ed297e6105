import { setTimeout as sleep } from "node:timers/promises";
import type { BaseLogger } from "pino";
import { ServiceError } from "../errors.ts";
import type { Files } from "../files/files.ts";
import type { TaskStore } from "../stores/store.ts";
import type { Task } from "../task.ts";

/** Records read at a time: a record may be large, and everything else waits meanwhile. */
const batchSize = 50;

/** Between two batches, so that a long list costs little at any moment. */
const batchPauseMs = 50;

const longestPauseMs = 60_000;

/**
 * Deletes what ended more than `retentionS` ago, again and again until `signal` is aborted, a minute
 * or a tenth of `retentionS` after it has been through with all. Never rejects.
 */
export async function deleteExpired(options: {
  store: TaskStore;
  files: Files;
  retentionS: number;
  signal: AbortSignal;
  logger: Pick<BaseLogger, "error">;
  now: () => Date;
}): Promise<void> {
  const { store, files, retentionS, signal, logger, now } = options;
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => undefined);

  async function pass(state: Task["state"]): Promise<void> {
    let before: number | undefined;
    do {
      const query = { state, limit: batchSize, ...(before !== undefined && { before }) };
      const { tasks, next } = await store.list(query);
      const endsBefore = new Date(now().getTime() - retentionS * 1000).toISOString();
      const expired = tasks.filter(({ finished_at }) => (finished_at ?? endsBefore) < endsBefore);
      await Promise.all(expired.map(deleteTask));
      before = next;
      if (before !== undefined) await pause(batchPauseMs);
    } while (before !== undefined && !signal.aborted);
  }

  async function deleteTask({ id, state }: Task): Promise<void> {
    try {
      // First: a file that no record tells of would stay for ever.
      if (state === "succeeded") await files.remove(id);
      await store.delete(id);
    } catch (err) {
      if (err instanceof ServiceError && err.code === "not_found") return;
      logger.error({ task: id, err }, "a task past its retention could not be deleted");
    }
  }

  while (!signal.aborted) {
    try {
      for (const state of ["succeeded", "failed", "canceled"] as const) await pass(state);
    } catch (err) {
      logger.error({ err }, "tasks past their retention could not be looked for");
    }
    await pause(Math.min(retentionS * 100, longestPauseMs));
  }
}
