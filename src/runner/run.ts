import type { BaseLogger } from "pino";
import { markStreamMs } from "../files/stream-journal.ts";
import { logFieldsOf, ServiceError } from "../model/errors.ts";
import type { PageInfo } from "../model/page-info.ts";
import type { Task } from "../model/task.ts";
import { traceIdOf } from "../model/trace-context.ts";
import { PlaylistFound } from "./choice/entries.ts";
import { growCollection, type GrowCollectionDeps, GrowthPaused } from "./grow-collection.ts";
import { decideRetry, type RetryRules } from "./retry-decision.ts";
import type { PartialDownloads } from "./storage-limit.ts";
import { Interruption, type TaskRun } from "./task-lease.ts";
import { removeUnneededFiles } from "./file-cleanup.ts";
import { produceFile, type ProduceFileDeps } from "./produce-file.ts";
import { createProgressReport, type ProgressReport } from "./progress.ts";

export interface RunDeps extends ProduceFileDeps, GrowCollectionDeps, RetryRules {
  logger: Pick<BaseLogger, "info" | "warn" | "error">;
  /** Limit of one run, milliseconds. */
  runTimeoutMs: number;
  partials: PartialDownloads;
  /** Default: none. */
  observer?: RunObserver | undefined;
}

export interface RunObserver {
  onStart(): void;
  /** Called with the bytes that a download has received since the last call. */
  onBytes(bytes: number): void;
  onEnd(outcome: RunOutcome, seconds: number): void;
}

/**
 * How a run ended:
 * - `succeeded`, `failed`: so did its task;
 * - `retried`: the task is queued, as it failed and may succeed later;
 * - `requeued`: the task is queued, as the process stops, or no further entry may be queued now;
 * - `grown`: the collection has its members, and ends with them;
 * - `taken`: the task was canceled, deleted or claimed elsewhere;
 * - `lost`: the result could not be stored.
 */
interface RunOutcome {
  kind: "succeeded" | "grown" | "failed" | "retried" | "requeued" | "taken" | "lost";
  /** Of the error, if it failed or is retried. */
  code?: string;
}

/**
 * Runs a claimed task and stores and logs the outcome. Never rejects; if the outcome cannot be stored, the
 * lease expires and the task is claimed again.
 */
export async function runTask(run: TaskRun, deps: RunDeps): Promise<void> {
  const { claim, host, taskLease, controller } = run;
  const { task, stalledCount } = claim;
  const { logger, observer, runTimeoutMs } = deps;
  const sinceMs = performance.now();
  const { traceparent } = task;
  const trace = traceparent !== undefined && { trace_id: traceIdOf(traceparent) };
  const about = { task: task.id, host, attempt: task.attempts, ...trace };
  const progress = createProgressReport({
    before: task.progress,
    save: (saved, madeProgress) => taskLease.update({ progress: saved }, madeProgress ? { stalledCount: 0 } : {}),
    onBytes: observer?.onBytes,
  });
  const marking = setInterval(() => void markStream(task.id, deps), markStreamMs);
  const timer = setTimeout(() => controller.abort(runTimeoutError(runTimeoutMs)), runTimeoutMs);
  observer?.onStart();
  logger.info({ ...about, ...(stalledCount > 0 && { stalledCount }) }, "run started");
  let end: RunEnd;
  try {
    end = await (task.kind === "collection" ? grow(run, undefined, deps) : saveFileOrGrow(run, progress, deps));
  } catch (error) {
    await progress.close();
    const { aborted, reason } = controller.signal;
    end = await storeFailure(aborted ? reason : error, run, progress, deps);
  }
  clearTimeout(timer);
  clearInterval(marking);
  const { outcome, level = "info", message, fields } = end;
  const ms = performance.now() - sinceMs;
  logger[level]({ ...about, bytes: progress.bytes, ms: Math.round(ms), ...fields }, message);
  observer?.onEnd(outcome, ms / 1000);
}

/** For readers in other processes, which do not learn otherwise that this one was killed. */
async function markStream(id: string, { files, logger }: RunDeps): Promise<void> {
  try {
    await files.markStream(id);
  } catch (err) {
    logger.warn({ task: id, ...logFieldsOf(err) }, "the stream of a run could not be marked");
  }
}

/** How a run ended, and the line of the log that says so. */
interface RunEnd {
  outcome: RunOutcome;
  /** Default: `info`. */
  level?: "info" | "warn" | "error";
  message: string;
  fields?: object;
}

/** Produces and stores the task's file, or has it grow if it is for the entries of a playlist. */
async function saveFileOrGrow(run: TaskRun, progress: ProgressReport, deps: RunDeps): Promise<RunEnd> {
  try {
    return await saveFile(run, progress, deps);
  } catch (error) {
    if (!(error instanceof PlaylistFound)) throw error;
    await progress.close();
    return grow(run, error.page, deps);
  }
}

/** @param found The playlist, if it has just been read. */
async function grow(run: TaskRun, found: PageInfo | undefined, deps: RunDeps): Promise<RunEnd> {
  try {
    await growCollection(run, found, deps);
    return { outcome: { kind: "grown" }, message: "collection has its members" };
  } catch (error) {
    if (!(error instanceof GrowthPaused)) throw error;
    const runAfter = new Date(deps.now().getTime() + growthPauseMs);
    const retry = { retry_at: runAfter.toISOString(), attempts: run.claim.task.attempts - 1 };
    await run.taskLease.updateWithRetry({ state: "queued", ...retry }, { runAfter });
    const message = "collection waits: the queue or its key's quota is full";
    return { outcome: { kind: "requeued" }, message, fields: { delayMs: growthPauseMs } };
  }
}

/** How long a collection waits for the queue or the quota of its owner. */
const growthPauseMs = 2_000;

async function saveFile(run: TaskRun, progress: ProgressReport, deps: RunDeps): Promise<RunEnd> {
  const { file, files } = await produceFile(run, progress, deps);
  await progress.close();
  const succeeded = { state: "succeeded", file, files, error: null } as const;
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  await deps.storage.save(bytes, (limit) => run.taskLease.updateWithRetry(succeeded, limit));
  const warnings = file.warnings?.map(({ code }) => code) ?? [];
  const fields = { bytes: file.size, ...(warnings.length > 0 && { warnings }) };
  return { outcome: { kind: "succeeded" }, message: "run succeeded", fields };
}

/** Stores what the failure means for the task. Never rejects. */
async function storeFailure(failure: unknown, run: TaskRun, progress: ProgressReport, deps: RunDeps): Promise<RunEnd> {
  try {
    if (failure instanceof Interruption) return await requeue(failure, run);
    return await failOrRetry(failure, run, progress, deps);
  } catch (err) {
    if (err instanceof Interruption) return requeue(err, run);
    const message = "run ended, but storing its result failed; the task runs again once its lease has expired";
    return { outcome: { kind: "lost" }, level: "error", message, fields: logFieldsOf(err) };
  }
}

async function requeue(
  { kind, message: reason }: Interruption,
  { claim: { task }, taskLease }: TaskRun,
): Promise<RunEnd> {
  if (kind === "leaseLost") {
    const message = "run ended: the task was canceled, deleted or claimed elsewhere";
    return { outcome: { kind: "taken" }, message };
  }
  await taskLease.updateWithRetry({ state: "queued", attempts: task.attempts - 1 });
  const message = "run interrupted; task requeued";
  return { outcome: { kind: "requeued" }, message, fields: { reason } };
}

async function failOrRetry(
  failure: unknown,
  { claim: { task, bytesLeft }, taskLease }: TaskRun,
  { bytes, hasProgressed }: ProgressReport,
  deps: RunDeps,
): Promise<RunEnd> {
  const { change, delayMs } = decideRetry(failure, { attempt: task.attempts, hasProgressed }, deps);
  const { code, message: reason, retryable } = change.error;
  const mayStay = retryable && deps.partials.keep(task, bytes, bytesLeft);
  if (!retryable) deps.partials.forget(task);
  if ((change.state === "failed" || !mayStay) && (await taskLease.renew())) {
    await cleanUp({ ...task, ...change }, deps, mayStay);
  }
  const runAfter = delayMs === undefined ? undefined : new Date(deps.now().getTime() + delayMs);
  const retry = runAfter && { retry_at: runAfter.toISOString() };
  await taskLease.updateWithRetry({ ...change, ...retry }, { runAfter });
  const fields = { code, reason };
  if (runAfter !== undefined) {
    // Of this service or its machine, such as a process that was killed as memory was short.
    const level = code === "unavailable" || code === "internal" ? "warn" : "info";
    const message = "run failed; will retry";
    return { outcome: { kind: "retried", code }, level, message, fields: { ...fields, delayMs } };
  }
  const outcome = { kind: "failed", code } as const;
  if (code !== "internal") return { outcome, level: "warn", message: "run failed", fields };
  const message = "run failed: internal error";
  return { outcome, level: "error", message, fields: { ...fields, err: failure } };
}

/**
 * Called before the failure is stored: while the lease holds the task no other run can start, and the store
 * may need the disk space.
 */
async function cleanUp(failed: Task, { files, logger }: RunDeps, mayStay: boolean): Promise<void> {
  try {
    if (!mayStay) await files.removeWorkFolder(failed.id);
    await removeUnneededFiles(failed.id, failed, files);
  } catch (err) {
    logger.error({ task: failed.id, ...logFieldsOf(err) }, "files of a failed task could not be removed");
  }
}

function runTimeoutError(runTimeoutMs: number): ServiceError {
  return new ServiceError(
    "upstream_timeout",
    `the run did not complete within ${runTimeoutMs / 1000} s (RUN_TIMEOUT_S)`,
  );
}
