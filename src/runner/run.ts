import type { BaseLogger } from "pino";
import { ServiceError } from "../errors.ts";
import type { Claim } from "../stores/store.ts";
import type { Task } from "../task.ts";
import { decideRetry, type RetryRules } from "./retry-decision.ts";
import type { TaskLease } from "./task-lease.ts";
import { Interruption } from "./interruption.ts";
import { removeUnneededFiles } from "./file-cleanup.ts";
import { produceFile, type ProduceFileDeps } from "./produce-file.ts";
import { createProgressReport } from "./progress.ts";

export interface RunDeps extends ProduceFileDeps, RetryRules {
  logger: Pick<BaseLogger, "info" | "warn" | "error">;
  /** Limit of one run, milliseconds. */
  runTimeoutMs: number;
  now: () => Date;
}

/** A claimed task on its way. */
export interface TaskRun {
  claim: Claim;
  /** The page's. */
  host: string;
  taskLease: TaskLease;
  /** Ends the run early, by an `Interruption`. */
  controller: AbortController;
}

/** So many runs in a row that ended together with the service show that the task is what ends it. */
const maxStalled = 5;

/**
 * One run of a claimed task, to its end in the store and in the log. Never rejects; where its end cannot
 * be stored the lease runs out, and the task is claimed again.
 */
export async function runTask(
  { claim, host, taskLease, controller }: TaskRun,
  parts: RunDeps,
): Promise<void> {
  const { runTimeoutMs, now } = parts;
  const { task, stalledCount } = claim;
  const { signal } = controller;
  const startedMs = now().getTime();
  const progress = createProgressReport({
    bytesBefore: task.progress?.downloaded_bytes ?? 0,
    save: (saved, madeProgress) => taskLease.update({ progress: saved }, { madeProgress }),
    now,
  });
  const timer = setTimeout(() => controller.abort(tooLong(runTimeoutMs)), runTimeoutMs);
  const about = { task: task.id, host, attempt: task.attempts };
  const soFar = () => ({ ...about, bytes: progress.bytes, ms: now().getTime() - startedMs });
  try {
    parts.logger.info({ ...about, stalledCount }, "run started");
    if (stalledCount >= maxStalled) throw poisonTaskError(stalledCount);
    const file = await produceFile(task, parts, { taskLease, progress, signal });
    await progress.close();
    await taskLease.updateWithRetry({ state: "succeeded", file, error: null });
    parts.logger.info({ ...soFar(), bytes: file.size }, "run succeeded");
  } catch (error) {
    await progress.close();
    const failure: unknown = signal.aborted ? signal.reason : error;
    await endRun(failure, claim, taskLease, parts, soFar());
  } finally {
    clearTimeout(timer);
  }
}

/** Puts down what the failure means for the task. */
async function endRun(
  failure: unknown,
  { task }: Claim,
  taskLease: TaskLease,
  parts: RunDeps,
  soFar: object,
): Promise<void> {
  const { logger, now } = parts;
  try {
    if (!(failure instanceof Interruption)) {
      const { change, delayMs } = decideRetry(failure, task.attempts, parts);
      const { code, message } = change.error;
      if (change.state === "failed" && (await taskLease.renew())) {
        await tidy({ ...task, ...change }, parts);
      }
      const runAfter = delayMs === undefined ? undefined : new Date(now().getTime() + delayMs);
      await taskLease.updateWithRetry(change, runAfter && { runAfter });
      const line = { ...soFar, code, reason: message };
      if (runAfter !== undefined) logger.info({ ...line, delayMs }, "run failed; will retry");
      else if (code !== "internal") logger.warn(line, "run failed");
      else logger.error({ ...line, err: failure }, "run failed: internal error");
    } else if (failure.kind !== "leaseLost") {
      await taskLease.updateWithRetry({ state: "queued", attempts: task.attempts - 1 });
      logger.info({ ...soFar, reason: failure.message }, "run interrupted; task requeued");
    } else logger.info(soFar, "run ended: the task was canceled, deleted or claimed elsewhere");
  } catch (err) {
    if (err instanceof Interruption) logger.info(soFar, "run ended: lease lost");
    else logger.error({ ...soFar, err }, "run ended, but storing its result failed");
  }
}

/**
 * Before the failure is stored: as long as the task is held no other run of it can have begun, and the
 * store may need the room for it.
 */
async function tidy(failed: Task, { files, logger }: RunDeps): Promise<void> {
  try {
    await removeUnneededFiles(failed.id, failed, files);
  } catch (err) {
    logger.error({ task: failed.id, err }, "files of a failed task could not be removed");
  }
}

function tooLong(runTimeoutMs: number): ServiceError {
  return new ServiceError(
    "upstream_timeout",
    `the run may last ${runTimeoutMs} ms, and lasted longer`,
  );
}

function poisonTaskError(stalledCount: number): ServiceError {
  return new ServiceError(
    "internal",
    `poison task: ${stalledCount} workers in a row died running it`,
    {
      retryable: false,
    },
  );
}
