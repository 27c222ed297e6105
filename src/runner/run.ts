import type { BaseLogger } from "pino";
import { ServiceError } from "../errors.ts";
import type { Claim } from "../stores/store.ts";
import type { Task } from "../task.ts";
import { judgeFailure, type RetryRules } from "./failure.ts";
import type { HeldTask } from "./held-task.ts";
import { Interruption } from "./interruption.ts";
import { removeLeft } from "./leftovers.ts";
import { produceFile, type Workshop } from "./produce-file.ts";
import { createProgressReport } from "./progress.ts";

export interface RunParts extends Workshop, RetryRules {
  logger: Pick<BaseLogger, "info" | "warn" | "error">;
  /** Limit of one run, milliseconds. */
  runTimeoutMs: number;
  now: () => Date;
}

/** A claimed task on its way. */
export interface Run {
  claim: Claim;
  /** The page's. */
  host: string;
  held: HeldTask;
  /** Ends the run early, by an `Interruption`. */
  controller: AbortController;
}

/** So many runs in a row that ended together with the service show that the task is what ends it. */
const maxDeaths = 5;

/**
 * One run of a claimed task, to its end in the store and in the log. Never rejects; where its end cannot
 * be stored the lease runs out, and the task is claimed again.
 */
export async function runTask(
  { claim, host, held, controller }: Run,
  parts: RunParts,
): Promise<void> {
  const { runTimeoutMs, now } = parts;
  const { task, deaths } = claim;
  const { signal } = controller;
  const startedMs = now().getTime();
  const progress = createProgressReport({
    bytesBefore: task.progress?.downloaded_bytes ?? 0,
    save: (saved, gotFurther) => held.update({ progress: saved }, { gotFurther }),
    now,
  });
  const timer = setTimeout(() => controller.abort(tooLong(runTimeoutMs)), runTimeoutMs);
  const about = { task: task.id, host, attempt: task.attempts };
  const soFar = () => ({ ...about, bytes: progress.bytes, ms: now().getTime() - startedMs });
  try {
    parts.logger.info({ ...about, deaths }, "run started");
    if (deaths >= maxDeaths) throw deadly(deaths);
    const file = await produceFile(task, parts, { held, progress, signal });
    await progress.close();
    await held.insist({ state: "succeeded", file, error: null });
    parts.logger.info({ ...soFar(), bytes: file.size }, "run succeeded");
  } catch (error) {
    await progress.close();
    const failure: unknown = signal.aborted ? signal.reason : error;
    await endRun(failure, claim, held, parts, soFar());
  } finally {
    clearTimeout(timer);
  }
}

/** Puts down what the failure means for the task. */
async function endRun(
  failure: unknown,
  { task }: Claim,
  held: HeldTask,
  parts: RunParts,
  soFar: object,
): Promise<void> {
  const { logger, now } = parts;
  try {
    if (!(failure instanceof Interruption)) {
      const { change, delayMs } = judgeFailure(failure, task.attempts, parts);
      const { code, message } = change.error;
      if (change.state === "failed" && (await held.verify())) {
        await tidy({ ...task, ...change }, parts);
      }
      const runAfter = delayMs === undefined ? undefined : new Date(now().getTime() + delayMs);
      await held.insist(change, runAfter && { runAfter });
      const line = { ...soFar, code, reason: message };
      if (runAfter !== undefined)
        logger.info({ ...line, delayMs }, "run failed; it is tried again");
      else if (code !== "internal") logger.warn(line, "run failed");
      else logger.error({ ...line, err: failure }, "run failed by a fault of the program");
    } else if (failure.kind !== "taken") {
      await held.insist({ state: "queued", attempts: task.attempts - 1 });
      logger.info({ ...soFar, reason: failure.message }, "run put back");
    } else logger.info(soFar, "run ended: the task was canceled, deleted or claimed elsewhere");
  } catch (err) {
    if (err instanceof Interruption) logger.info(soFar, "run ended, its task taken away");
    else logger.error({ ...soFar, err }, "run ended, but the store cannot take it");
  }
}

/**
 * Before the failure is stored: as long as the task is held no other run of it can have begun, and the
 * store may need the room for it.
 */
async function tidy(failed: Task, { files, logger }: RunParts): Promise<void> {
  try {
    await removeLeft(failed.id, failed, files);
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

function deadly(deaths: number): ServiceError {
  return new ServiceError("internal", `its run ended ${deaths} times together with the service`, {
    retryable: false,
  });
}
