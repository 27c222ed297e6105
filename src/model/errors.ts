/**
 * Every way in which a request or a task can fail: a closed list of codes, each with its HTTP status,
 * its title in a problem document (RFC 9457) and whether the same request may succeed later. `finalStatus`: the
 * status if it may not; default: the same.
 */
export const errorCodes = {
  invalid_request: { status: 400, title: "Invalid request", retryable: false },
  invalid_url: { status: 400, title: "Invalid URL", retryable: false },
  unauthorized: { status: 401, title: "Unauthorized", retryable: false },
  forbidden: { status: 403, title: "Forbidden", retryable: false },
  cross_site: { status: 403, title: "Cross-site request", retryable: false },
  not_found: { status: 404, title: "Not found", retryable: false },
  method_not_allowed: { status: 405, title: "Method not allowed", retryable: false },
  not_acceptable: { status: 406, title: "Not acceptable", retryable: false },
  request_timeout: { status: 408, title: "Request timeout", retryable: true },
  conflict: { status: 409, title: "Conflict", retryable: false },
  file_removed: { status: 410, title: "File removed", retryable: false },
  precondition_failed: { status: 412, title: "Precondition failed", retryable: false },
  payload_too_large: { status: 413, title: "Payload too large", retryable: false },
  unsupported_media_type: { status: 415, title: "Unsupported media type", retryable: false },
  range_not_satisfiable: { status: 416, title: "Range not satisfiable", retryable: false },
  expectation_failed: { status: 417, title: "Expectation failed", retryable: false },
  misdirected_request: { status: 421, title: "Misdirected request", retryable: false },
  idempotency_mismatch: { status: 422, title: "Idempotency key reused", retryable: false },
  address_blocked: { status: 422, title: "Address blocked", retryable: false },
  no_media: { status: 422, title: "No media", retryable: false },
  format_unavailable: { status: 422, title: "Format unavailable", retryable: false },
  drm_protected: { status: 422, title: "DRM protected", retryable: false },
  login_required: { status: 422, title: "Login required", retryable: false },
  geo_restricted: { status: 422, title: "Geo-restricted", retryable: false },
  playlist: { status: 422, title: "Playlist", retryable: false },
  entries_failed: { status: 422, title: "Entries failed", retryable: true },
  live_stream: { status: 422, title: "Live stream", retryable: false },
  too_large: { status: 422, title: "Too large", retryable: false },
  too_many_requests: { status: 429, title: "Too many requests", retryable: true },
  quota_exceeded: { status: 429, title: "Quota exceeded", retryable: true, finalStatus: 507 },
  headers_too_large: { status: 431, title: "Headers too large", retryable: false },
  internal: { status: 500, title: "Internal error", retryable: true },
  upstream_unreachable: { status: 502, title: "Upstream unreachable", retryable: true },
  upstream_status: { status: 502, title: "Upstream refused", retryable: false },
  upstream_invalid: { status: 502, title: "Upstream response invalid", retryable: false },
  unavailable: { status: 503, title: "Service unavailable", retryable: true },
  upstream_timeout: { status: 504, title: "Upstream timeout", retryable: true },
  disk_full: { status: 507, title: "Disk full", retryable: false },
} as const satisfies Record<string, CodeTraits>;

interface CodeTraits {
  status: number;
  title: string;
  retryable: boolean;
  finalStatus?: number;
}

/** A code of that list, as problem documents and failed tasks have it. */
export type ErrorCode = keyof typeof errorCodes;

/** Returns the HTTP status of an error. */
export function statusOf({ code, retryable }: Pick<ServiceError, "code" | "retryable">): number {
  const { status, finalStatus = status }: CodeTraits = errorCodes[code];
  return retryable ? status : finalStatus;
}

/** Returns the HTTP statuses that errors with this code may have. */
export function statusesOf(code: ErrorCode): Set<number> {
  return new Set([true, false].map((retryable) => statusOf({ code, retryable })));
}

/** One fault of an input: `pointer` is a JSON Pointer (RFC 6901) into body, query or headers. */
export interface InputFault {
  pointer: string;
  detail: string;
}

interface ServiceErrorOptions {
  cause?: unknown;
  /** Default: that of the code. An upstream's 503, for example, is worth a retry; its 404 is not. */
  retryable?: boolean;
  /** Sent as `Retry-After` (RFC 9110 §10.2.3), whole seconds, at least 1. */
  retryAfterS?: number | undefined;
  /** The faults of an invalid input, sent as `errors[]` of the problem document. */
  faults?: readonly InputFault[];
  /** The status of the upstream's response: with `upstream_status`, and with `upstream_invalid` if it has other bytes than those asked for. */
  upstreamStatus?: number | undefined;
  /** With `upstreamStatus` 416: bytes of the resource, as the response states (RFC 9110 §14.4). */
  resourceBytes?: number | undefined;
  /** Nothing was sent: the host is left alone until `retryAfterS` have passed. Default false. */
  isUntried?: boolean | undefined;
}

/**
 * The only error that modules throw on purpose. `message` says what was tried, the rule and the value, in
 * one sentence that clients may read: no secrets, nothing from an upstream's body.
 */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly retryAfterS: number | undefined;
  readonly faults: readonly InputFault[];
  readonly upstreamStatus: number | undefined;
  readonly resourceBytes: number | undefined;
  readonly isUntried: boolean;

  constructor(code: ErrorCode, message: string, options: ServiceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? errorCodes[code].retryable;
    this.retryAfterS = options.retryAfterS;
    this.faults = options.faults ?? [];
    this.upstreamStatus = options.upstreamStatus;
    this.resourceBytes = options.resourceBytes;
    this.isUntried = options.isUntried ?? false;
  }
}

/** Returns the member for the status of the site's response that a client may see: nothing unless it is why the error is. */
export function statedUpstream({ code, upstreamStatus }: ServiceError): { upstream_status?: number } {
  return code === "upstream_status" && upstreamStatus !== undefined ? { upstream_status: upstreamStatus } : {};
}

/** The error of a `part` of a request, such as `body`, with these faults, at least one; its message is the first. */
export function inputError(part: string, ...faults: readonly InputFault[]): ServiceError {
  const { pointer, detail } = faults[0]!;
  const where = pointer === "" ? `the ${part}` : `${pointer} in the ${part}`;
  return new ServiceError("invalid_request", `${where} ${detail}`, { faults });
}

/** Whether it is an error with one of these codes. */
export function isServiceError(error: unknown, ...codes: readonly ErrorCode[]): error is ServiceError {
  return error instanceof ServiceError && codes.includes(error.code);
}

/** Whether it is a failure of the site that was asked (`upstream_*`), not of this service or its disk. */
export function isUpstreamError(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.code.startsWith("upstream_");
}

/** Returns a handler of errors that gives `value` for a failure of the site that was asked, and throws all others. */
export function upstreamAs<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (isUpstreamError(error)) return value;
    throw error;
  };
}

/** Returns what `read` returns; undefined if it throws a ServiceError: what it reads is damaged, or protected. */
export function unlessUnreadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

/** Whether an upstream's response of this status asks for a pause of the whole host if it has `Retry-After` (RFC 6585 §4, RFC 9110 §15.6.4). */
export function isPauseStatus(status: number | undefined): boolean {
  return status === 429 || status === 503;
}

/** The error of requests that arrive while the service stops, or that it ends. */
export function shutdownError(): ServiceError {
  return new ServiceError("unavailable", "the service is shutting down");
}

/** Returns what a line of the log has of an error: code and reason if the service names it, such as a full disk; of a defect its stack. */
export function logFieldsOf(err: unknown): { code: ErrorCode; reason: string } | { err: unknown } {
  return err instanceof ServiceError && err.code !== "internal" ? { code: err.code, reason: err.message } : { err };
}

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** Returns the message of what was thrown. */
export function messageOf(thrown: unknown): string {
  return asError(thrown).message;
}

/** Returns the `code` of an error of the system, Node or undici ("ECONNREFUSED", "UND_ERR_SOCKET", …); undefined of any other. */
export function systemErrorCode(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}

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
