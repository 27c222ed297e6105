import { type ErrorCode, ServiceError, systemErrorCode } from "../model/errors.ts";
import { undici } from "./undici.ts";

/** Largest header of a response. */
export const maxHeaderBytes = 32 * 1024;

/**
 * Whether a later request may succeed after this status: 5xx, 408, 425 and 429 (RFC 9110 §15.5.9, RFC 8470 §5.2,
 * RFC 6585 §4).
 */
export function isRetryableStatus(status: number): boolean {
  return status >= 500 || status === 408 || status === 425 || status === 429;
}

/** A day; longer waits are cut to it. */
const maxRetryAfterS = 24 * 60 * 60;

/**
 * Returns the seconds to wait that a `Retry-After` field gives, as delay or as date (RFC 9110
 * §10.2.3): a whole number, 1–86400; undefined if there is no field or it is neither.
 */
export function parseRetryAfter(value: string | undefined, now: Date): number | undefined {
  if (value === undefined) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : secondsUntil(value, now);
  if (Number.isNaN(seconds)) return undefined;
  return Math.min(Math.max(Math.ceil(seconds), 1), maxRetryAfterS);
}

/** Parses the three forms of HTTP-date (RFC 9110 §5.6.7); asctime's has no "GMT", but is GMT. */
function secondsUntil(date: string, now: Date): number {
  if (!/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [\w :-]{1,40}$/.test(date)) return Number.NaN;
  const time = Date.parse(date.endsWith(" GMT") ? date : `${date} GMT`);
  return (time - now.getTime()) / 1000;
}

/** Returns the error of a response that breaks `rule`; `what` names the request. */
export function invalidResponseError(what: string, rule: string, cause?: unknown): ServiceError {
  return new ServiceError("upstream_invalid", `${what}: ${rule}`, { cause });
}

/**
 * Converts an error of a request to a ServiceError; `what` names the request in its message. Returns
 * a ServiceError unchanged, and also an error without a code, which is a bug of ours.
 */
export function toUpstreamError(error: unknown, what: string, idleTimeoutMs: number): unknown {
  if (error instanceof ServiceError) return error;
  const fail = (as: ErrorCode, rule: string) => new ServiceError(as, `${what}: ${rule}`, { cause: error });
  if (error instanceof undici.errors.HTTPParserError) {
    return error.message.includes("Invalid EOF state")
      ? fail("upstream_unreachable", "the connection was lost during the response")
      : fail("upstream_invalid", error.message);
  }
  const code = systemErrorCode(error);
  switch (code) {
    case undefined:
      return error;
    case "UND_ERR_CONNECT_TIMEOUT":
      return fail("upstream_timeout", `no connection within ${idleTimeoutMs} ms`);
    case "UND_ERR_HEADERS_TIMEOUT":
      return fail("upstream_timeout", `no response within ${idleTimeoutMs} ms`);
    case "UND_ERR_BODY_TIMEOUT":
      return fail("upstream_timeout", `no bytes for ${idleTimeoutMs} ms`);
    case "UND_ERR_HEADERS_OVERFLOW":
      return fail("upstream_invalid", `the response's header is larger than ${maxHeaderBytes} bytes`);
    case "UND_ERR_DESTROYED":
    case "UND_ERR_CLOSED":
      return fail("unavailable", "the HTTP client is closed");
    case "EMFILE":
    case "ENFILE":
      return fail("unavailable", `this process cannot open any more files (${code})`);
    default:
      return fail("upstream_unreachable", `${connectionFault(code)} (${code})`);
  }
}

/** Says why there is no connection. */
function connectionFault(code: string): string {
  if (/CERT|^UNABLE_TO_|^HOSTNAME_MISMATCH$/.test(code)) return "the server's certificate is not trusted";
  // What comes is no TLS record, as from a server of plain HTTP.
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER") return "the server does not speak HTTPS on this port";
  return "the connection failed";
}
