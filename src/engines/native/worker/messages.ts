import { type ErrorCode, ServiceError } from "../../../model/errors.ts";
import type { Download, DownloadJob, DownloadProgress } from "../../engine.ts";
import type { FileWork } from "../output/assemble.ts";

/** Sent to the worker; one download at a time. */
export type WorkerRequest = { type: "download"; job: DownloadJob } | { type: "finish" } | { type: "abort" };

/**
 * Sent by the worker; `done` or `failed` ends a download. `alive`: its event loop turns. `work`: it begins
 * work on complete files, or has ended it (`null`). `blocked`: its guard has blocked an address.
 */
export type WorkerMessage =
  | { type: "alive" }
  | { type: "work"; work: FileWork | null }
  | { type: "blocked"; reason: string }
  | { type: "progress"; progress: DownloadProgress }
  | { type: "done"; download: Download }
  | { type: "failed"; failure: SerializedError };

/** An error as sent between processes. */
export interface SerializedError extends Pick<
  ServiceError,
  "message" | "retryable" | "retryAfterS" | "upstreamStatus"
> {
  /** `null`: it is no ServiceError. */
  code: ErrorCode | null;
  stack: string;
}

export function serializeError(error: unknown): SerializedError {
  const known = error instanceof ServiceError ? error : undefined;
  return {
    code: known?.code ?? null,
    message: error instanceof Error ? error.message : String(error),
    stack: stackOf(error),
    retryable: known?.retryable ?? false,
    retryAfterS: known?.retryAfterS,
    upstreamStatus: known?.upstreamStatus,
  };
}

/** Restores the error; any other than a ServiceError becomes `internal`, not retryable. */
export function deserializeError(failure: SerializedError): ServiceError {
  const { code, message, stack, ...more } = failure;
  const cause = new Error(message);
  cause.stack = stack;
  if (code !== null) return new ServiceError(code, message, { ...more, cause });
  const hidden = "the download failed with an internal error; see the log";
  return new ServiceError("internal", hidden, { cause, retryable: false });
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\ncaused by ${stackOf(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`.slice(0, 8_000);
}
