import type { BaseLogger } from "pino";
import { ServiceError } from "../model/errors.ts";
import type { Claim } from "../stores/store.ts";
import type { Task } from "../model/task.ts";
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
  /** Default: nobody observes. */
  observer?: RunObserver | undefined;
}

/** What is observed of the runs of a process. */
export interface RunObserver {
  onStart(): void;
  /** Called with the bytes that a download has received since the last call. */
  onBytes(bytes: number): void;
  onEnd(outcome: RunOutcome, seconds: number): void;
}

/**
 * How a run ended. With its task `succeeded`, `failed`, queued for a retry (`retried`) or because the process stops
 * (`requeued`); `taken`: the task was canceled, deleted or claimed elsewhere; `lost`: its result could not be stored.
 */
export interface RunOutcome {
  kind: "succeeded" | "failed" | "retried" | "requeued" | "taken" | "lost";
  /** Of the error, if it failed or is retried. */
  code?: string;
}

/** One run of a claimed task. */
export interface TaskRun {
  claim: Claim;
  /** Host of the page. */
  host: string;
  taskLease: TaskLease;
  /** Aborted with an `Interruption`, or when the run lasts too long. */
  controller: AbortController;
  /** Aborted when a recording is to end with what there is. */
  finish: AbortController;
  /** Called once the run has more bytes than earlier ones. */
  onProgress(): void;
}

/** After this many dead workers in a row the task itself is taken for the cause. */
const maxStalled = 2;

/**
 * Whether a worker died running the task, which may have been the cause: until it has more bytes than it had then, it
 * must run alone, so that it cannot end other runs.
 */
export function isSuspect({ stalledCount }: Claim): boolean {
  return stalledCount > 0;
}

/**
 * Runs a claimed task and stores and logs the outcome. Never rejects; if the outcome cannot be stored, the
 * lease expires and the task is claimed again.
 */
export async function runTask(
  { claim, host, taskLease, controller, finish, onProgress }: TaskRun,
  deps: RunDeps,
): Promise<void> {
  const { runTimeoutMs } = deps;
  const { task, stalledCount } = claim;
  const { signal } = controller;
  const { observer } = deps;
  const sinceMs = performance.now();
  const progress = createProgressReport({
    bytesBefore: task.progress?.downloaded_bytes ?? 0,
    save: async (saved, madeProgress) => {
      await taskLease.update({ progress: saved }, { madeProgress });
      if (madeProgress) onProgress();
    },
    onBytes: observer?.onBytes,
  });
  const timer = setTimeout(() => controller.abort(runTimeoutError(runTimeoutMs)), runTimeoutMs);
  const about = { task: task.id, host, attempt: task.attempts };
  const soFar = () => {
    const ms = Math.round(performance.now() - sinceMs);
    return { ...about, bytes: progress.bytes, ms };
  };
  let outcome: RunOutcome = { kind: "succeeded" };
  observer?.onStart();
  try {
    deps.logger.info({ ...about, stalledCount }, "run started");
    if (stalledCount >= maxStalled) throw poisonTaskError(stalledCount);
    const file = await produceFile(task, deps, {
      taskLease,
      progress,
      signal,
      finish: finish.signal,
      bytesLeft: claim.bytesLeft,
    });
    await progress.close();
    const succeeded = { state: "succeeded", file, error: null } as const;
    await deps.storage.save(file.size, (limit) => taskLease.updateWithRetry(succeeded, limit));
    const warnings = file.warnings?.map(({ code }) => code) ?? [];
    const line = { ...soFar(), bytes: file.size, ...(warnings.length > 0 && { warnings }) };
    deps.logger.info(line, "run succeeded");
  } catch (error) {
    await progress.close();
    const failure: unknown = signal.aborted ? signal.reason : error;
    outcome = await endRun(failure, claim, taskLease, deps, soFar());
  } finally {
    clearTimeout(timer);
    observer?.onEnd(outcome, (performance.now() - sinceMs) / 1000);
  }
}

/** Stores, logs and returns what the failure means for the task. */
async function endRun(
  failure: unknown,
  { task }: Claim,
  taskLease: TaskLease,
  deps: RunDeps,
  soFar: object,
): Promise<RunOutcome> {
  const { logger, now } = deps;
  try {
    if (!(failure instanceof Interruption)) {
      const { change, delayMs } = decideRetry(failure, task.attempts, deps);
      const { code, message } = change.error;
      if (change.state === "failed" && (await taskLease.renew())) {
        await cleanUp({ ...task, ...change }, deps);
      }
      const runAfter = delayMs === undefined ? undefined : new Date(now().getTime() + delayMs);
      const retry = runAfter && { retry_at: runAfter.toISOString() };
      await taskLease.updateWithRetry({ ...change, ...retry }, { runAfter });
      const line = { ...soFar, code, reason: message };
      if (runAfter !== undefined) logger.info({ ...line, delayMs }, "run failed; will retry");
      else if (code !== "internal") logger.warn(line, "run failed");
      else logger.error({ ...line, err: failure }, "run failed: internal error");
      return { kind: runAfter === undefined ? "failed" : "retried", code };
    }
    if (failure.kind === "leaseLost") {
      logger.info(soFar, "run ended: the task was canceled, deleted or claimed elsewhere");
      return { kind: "taken" };
    }
    await taskLease.updateWithRetry({ state: "queued", attempts: task.attempts - 1 });
    logger.info({ ...soFar, reason: failure.message }, "run interrupted; task requeued");
    return { kind: "requeued" };
  } catch (err) {
    if (err instanceof Interruption) {
      logger.info(soFar, "run ended: lease lost");
      return { kind: "taken" };
    }
    logger.error({ ...soFar, err }, "run ended, but storing its result failed");
    return { kind: "lost" };
  }
}

/**
 * Called before the failure is stored: while the lease holds the task no other run can start, and the store
 * may need the disk space.
 */
async function cleanUp(failed: Task, { files, logger }: RunDeps): Promise<void> {
  try {
    await removeUnneededFiles(failed.id, failed, files);
  } catch (err) {
    logger.error({ task: failed.id, err }, "files of a failed task could not be removed");
  }
}

function runTimeoutError(runTimeoutMs: number): ServiceError {
  return new ServiceError("upstream_timeout", `the run did not complete within ${runTimeoutMs} ms`);
}

function poisonTaskError(stalledCount: number): ServiceError {
  const message = `poison task: ${stalledCount} workers in a row died running it`;
  return new ServiceError("internal", message, { retryable: false });
}
