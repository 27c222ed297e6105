import type { BaseLogger } from "pino";
import { sleep } from "../async/deadline.ts";
import { isServiceError } from "../model/errors.ts";
import type { FileStore } from "../files/files.ts";
import type { Clock } from "../stores/clock.ts";
import type { TaskStore } from "../stores/store.ts";
import { endStates, type Task } from "../model/task.ts";
import { logOutages } from "../async/outages.ts";
import { createFileRemover } from "./file-cleanup.ts";

/** Records read at a time: a record may be large, and parsing it blocks the thread. Also members whose files are removed at a time. */
const batchSize = 50;

/** Pause between two batches, so that a long list does not slow other work. */
const batchPauseMs = 50;

const longestPauseMs = 60_000;

/** A page of a list, or what came after it: from the one before down to `next`. What ends there later expires later, too. */
interface ReadPage {
  next: number | undefined;
  readMs: number;
  /** When the first of its tasks expires. */
  dueMs: number;
}

interface RetentionOptions {
  store: TaskStore;
  files: FileStore;
  retentionS: number;
  signal: AbortSignal;
  logger: Pick<BaseLogger, "error" | "info">;
  clock: Clock;
}

/**
 * Deletes tasks that ended more than `retentionS` (0: never) ago, with their files, until `signal` is aborted; those whose
 * file is in use, once it is not; members with their collection. Pauses for a tenth of `retentionS`, at most a minute, between two passes.
 * Several processes may do so at the same time. Never rejects.
 *
 * Of the time of day and the steady clock the earlier one counts: a clock that is set forward while this runs
 * deletes nothing too early.
 */
export async function deleteExpired(options: RetentionOptions): Promise<void> {
  const { store, retentionS, signal, logger } = options;
  if (retentionS === 0) return;
  const removeUnused = createFileRemover(options, "the file of a task past its retention could not be removed");

  async function deleteTask({ id, state, kind }: Task): Promise<void> {
    // Before the record: a file without a record would stay for ever.
    const members = kind === undefined ? [] : await store.ownMembers(id);
    for (let n = 0; n < members.length; n += batchSize) {
      const removed = await Promise.all(members.slice(n, n + batchSize).map(removeUnused));
      if (removed.some(({ isRemoved }) => !isRemoved) || signal.aborted) return;
    }
    if (state === "succeeded" && !(await removeUnused(id)).isRemoved) return;
    try {
      await store.delete(id);
    } catch (error) {
      if (!isServiceError(error, "not_found")) throw error;
    }
  }

  const pass = createPass({ ...options, deleteTask });
  const attempt = logOutages(logger, {
    failed: "tasks past their retention cannot be deleted",
    restored: "tasks past their retention can be deleted again",
  });
  while (!signal.aborted) {
    await attempt(async () => {
      for (const state of endStates) await pass(state);
    });
    await sleep(Math.min(retentionS * 100, longestPauseMs), signal);
  }
}

interface PassOptions extends Pick<RetentionOptions, "store" | "retentionS" | "signal" | "clock"> {
  deleteTask(task: Task): Promise<void>;
}

/** Returns a function that deletes what has expired of the tasks in a state. */
function createPass({ store, retentionS, signal, clock, deleteTask }: PassOptions) {
  /** Of the pass before, in the order of the list. */
  const pages = new Map<Task["state"], readonly ReadPage[]>();

  /** Reads the newest page, and of the others those in which a task may have expired. */
  async function pass(state: Task["state"]): Promise<void> {
    const known = pages.get(state) ?? [];
    const read: ReadPage[] = [];
    let at = 0;
    let before: number | undefined;
    do {
      const nowMs = Math.min(clock.now().getTime(), clock.steadyMs());
      const from = before ?? Infinity;
      while ((known[at]?.next ?? 0) >= from) at += 1;
      const page = known[at];
      const isDue = before === undefined || page === undefined || nowMs < page.readMs || nowMs > page.dueMs;
      read.push(isDue ? await readPage(state, before, nowMs) : page);
      before = read.at(-1)?.next;
      if (before !== undefined && isDue) await sleep(batchPauseMs, signal);
    } while (before !== undefined && !signal.aborted);
    pages.set(state, read);
  }

  async function readPage(state: Task["state"], before: number | undefined, nowMs: number): Promise<ReadPage> {
    const { tasks, next } = await store.list({ state, limit: batchSize, before });
    const endsBefore = new Date(nowMs - retentionS * 1000).toISOString();
    const expired = tasks.filter(({ finished_at }) => (finished_at ?? endsBefore) < endsBefore);
    await Promise.all(expired.map(deleteTask));
    const ends = tasks.flatMap(({ finished_at }) => (finished_at === null ? [] : [Date.parse(finished_at)]));
    return { next, readMs: nowMs, dueMs: Math.min(nowMs, ...ends) + retentionS * 1000 };
  }

  return pass;
}
