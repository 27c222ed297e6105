import { type ErrorCode, messageOf, ServiceError } from "./errors.ts";

/** An error as sent between processes. */
export interface SerializedError extends Pick<
  ServiceError,
  "message" | "retryable" | "retryAfterS" | "upstreamStatus" | "isUntried"
> {
  /** `null`: it is no ServiceError. */
  code: ErrorCode | null;
  stack: string;
}

/** Returns what `deserializeError` restores it from. */
export function serializeError(error: unknown): SerializedError {
  const known = error instanceof ServiceError ? error : undefined;
  return {
    code: known?.code ?? null,
    message: messageOf(error),
    stack: stackOf(error),
    retryable: known?.retryable ?? false,
    retryAfterS: known?.retryAfterS,
    upstreamStatus: known?.upstreamStatus,
    isUntried: known?.isUntried ?? false,
  };
}

/** Restores the error; any other than a ServiceError becomes `internal`, not retryable. `what` has failed. */
export function deserializeError(failure: SerializedError, what: string): ServiceError {
  const { code, message, stack, ...more } = failure;
  const cause = new Error(message);
  cause.stack = stack;
  if (code !== null) return new ServiceError(code, message, { ...more, cause });
  const hidden = `${what} failed with an internal error; see the log`;
  return new ServiceError("internal", hidden, { cause, retryable: false });
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\ncaused by ${stackOf(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`.slice(0, 8_000);
}
